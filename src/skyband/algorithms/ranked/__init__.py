"""Rows ranked by one score: an algorithm a file. `skyband.algorithms` lists them, its `contract` says what they owe."""
