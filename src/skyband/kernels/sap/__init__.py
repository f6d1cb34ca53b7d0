"""SAP (TKDE17), as `algorithms.ranked.sap` tells it: state.py names what it remembers, run.py takes rows and answers windows.

rows.py         the window's raw scores           partition.py, ranksum.py   the current partition and where it ends
front.py        forming the oldest partition      savl.py                    its meaningful rows
answer.py       the answer, made from the last one
"""
