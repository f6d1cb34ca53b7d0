"""Many queries over points: grids, what queries score by, searches, and who is shown which row.

questions.py, code.py, code_blocks.py, apart.py   what queries rank by: weighted sums, distances, register code and its bounds
grid.py, query_grid.py, point_grid.py, points.py  cells: which queries monitor them, which rows lie in them
box_search.py                                     the best rows of few cells
crowd.py, crowd_index.py, calendar.py             rows shown to the queries that monitor their cell; screening.py, 64 at a time
scan.py, unscored.py                              every query over all rows; how many of these have no score
thresholds.py, above.py                           every row above a bound
deletion.py                                       rows that leave before they expire
tsl.py, sorted_lists.py                           views refilled from sorted lists
contenders.py                                     which rows of a pane some of many queries can rank
fetching.py                                       memory asked for before it is read
"""
