"""Many queries over points, each with a score of its own.

many.py, asked.py, coded.py                        what all such structures hold: queries and what they rank by
scanned.py                                         every query over all rows
crowd.py, crowd_time.py, extent.py, reindexed.py   a grid tells which queries a row can interest; crowd_check.py
thresholds.py, above.py                            every row above a bound
tsl.py, tsl_time.py                                the rival: sorted lists and views
"""
