"""Pairs of rows (ICDE12): contract.py says what a structure owes, skyband.py is the one in use.

arrays.py      its arrays, empty               screening.py   looking ahead, on all cores
check.py       what must hold of them          oracle.py      the definition itself
naive.py, rivals.py                            what it is measured against
"""
