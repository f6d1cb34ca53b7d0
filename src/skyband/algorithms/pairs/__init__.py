"""Pairs of rows: `contract.py` says what a structure owes, `skyband.py` is the one in use; the others check or rival it."""
