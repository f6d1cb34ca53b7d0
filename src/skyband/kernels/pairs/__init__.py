"""Pairs of rows (ICDE12): state.py says what there is, run.py takes rows and answers windows.

score.py, distance.py, coarse.py   the scores of a new row with older ones; nearest pairs in float32 first
young.py                           the newest rows, whose pairs wait
band.py, tree.py                   the K-skyband and its staircase; the priority search tree over it
boxes.py, zones.py, screen.py      older rows that need not be scored
emission.py                        answers to result rows
naive.py, rivals.py                what the skyband is measured against
"""
