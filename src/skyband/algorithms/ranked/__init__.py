"""Rows ranked by one score. `skyband.algorithms` lists the algorithms, its `contract` says what they owe.

oracle.py                      the definition itself
strict.py                      the k-skyband
pruned.py, hybrid.py           pruned skybands and filters; candidate_limit.py: how much a probabilistic one keeps
mintopk.py                     the top-k of every future window
panes.py                       two stacks of panes
sap.py                         the window in partitions; sap_check.py; panes_first.py: shown the best rows of long slides alone
shared.py                      many queries in one structure; shared_parts.py: in several; arena.py: where their bands lie
"""
