"""The steps of algorithms that rank rows by one score.

strict.py, mintopk.py     candidates in sorted arrays
panes.py, pane_tops.py    the best k of each pane; windows of panes by two stacks
shared.py                 many windows over one score: ladder.py, views.py, view_size.py
pruning.py                filters and cores: bands.py holds candidates, following.py their windows, order_watch.py whether
                          the stream's order is random
"""
