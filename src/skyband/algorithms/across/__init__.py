"""Objects across unsynchronized streams: `contract.py` says what a structure owes.

sla.py, eaa.py               exact: every tuple, or only instances that may still rank
promised.py, estimated.py    approximate; guessing.py and correlation.py are what they guess by
oracle.py                    adds up and sorts
"""
