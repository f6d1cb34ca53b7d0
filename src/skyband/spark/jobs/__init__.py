"""Jobs without code, `skyband run JOB.toml`.

toml_lines.py, file.py, job.py   the file, its lines, the job it describes; queries.py: what it asks
checks.py, columns.py            what is refused before Spark starts; words.py: the plan in words
source.py                        its rows; broken ones counted and left out
running.py, refusals.py          running it; errors of Spark in one line
board.py, committed.py           the current tops, from result rows or from what the sink has committed
"""
