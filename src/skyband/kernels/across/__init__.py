"""Objects whose attributes come in separate streams (CIKM09): tables.py says what all of it has in common.

lists.py, sorted_blocks.py      every tuple, each stream's values sorted, and a view of the best objects (SLA)
instances.py, worth.py          instances of objects that may still rank, and what they may come to (EAA)
samples.py, returns.py          where objects are seen, and how soon again
promise.py, witness.py          what promises little is forgotten, and what that loses
emission.py                     answers to result rows
"""
