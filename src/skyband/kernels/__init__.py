"""Compiled functions over arrays. The only folder that imports numba; nothing here imports skyband above it.

ranked/ sap/ spatial/ pairs/ across/   the steps of the algorithms of a family

What families share:

jit.py           the one decorator: cached, GIL released, IEEE arithmetic kept; compiled_once.py: one process compiles for all
order.py         who outranks whom: the total order of skyband, defined here and nowhere else
best.py          the best k of a run of rows: collect, select, sort, merge
live.py          which rows can still win, whatever the algorithm
expression.py    scores: one kernel that runs any expression's code
lookup.py        rows by arrival number, out of chunks that lie anywhere
tables.py        the named tuples of arrays that cross from Python into kernels
tops.py          the current top-k of every query, and how a window's answer is handed out
emission.py      who entered and who left, from one top-k to the next
listing.py       which windows close while rows come in
parts.py         answers of several parts of a structure, put in one order
cells.py         the best k rows of each group and pane, which are all that travels on Spark
hashing.py, xxhash.py   numbers for texts, and Spark's own hash of a row
"""
