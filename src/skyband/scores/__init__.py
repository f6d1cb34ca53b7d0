"""What rows, and pairs of rows, are ranked by.

score.py        any score, from what the user wrote       formulas.py    linear, product, distance, region
parser.py       text to tree                              expression.py  the tree
evaluation.py   the tree in NumPy and in Numba            binding.py     a score meets a stream's columns
pair_score.py   scores of pairs                           pair_search.py which of them are distances
"""
