"""Compiled functions over arrays. The only folder that imports numba; nothing here imports skyband above it.

jit.py           the one decorator: cached, GIL released, IEEE arithmetic kept
order.py         who outranks whom: the total order of skyband, defined here and nowhere else
best.py          the best k of a run of rows: collect, select, sort, merge
live.py          which rows can still win, whatever the algorithm
expression.py    scores: one kernel that runs any expression's code
lookup.py        rows by arrival number, out of chunks that lie anywhere
tables.py        the named tuples of arrays that cross from Python into kernels
tops.py          the current top-k of every query, and how a window's answer is handed out
emission.py      who entered and who left, from one top-k to the next
across_*.py      objects across streams: tables, sorted lists (sorted_blocks.py), instances and what they may come to, emission
contenders.py    which rows of a pane some of many queries can rank
samples.py       which streams an object is seen in, from a sample that forgets
strict.py, mintopk.py, panes.py, sap_*.py, shared.py (with ladder.py, view_size.py)
                 the steps of the algorithm of that name
"""
