"""Every algorithm as plain Python: kernels without compilation check every index and cannot write to read-only arrays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent

CASES = """
import numpy as np
import streams
from harness import feed, plan_of
from skyband.algorithms import entry
from test_contract import RANKED, expected, made, served, time_windows, tops_of, answer_windows

assert __import__("numba").config.DISABLE_JIT
for name in RANKED:
    for shape in ("random", "tied", "falling", "infinite"):
        scores = streams.shaped(shape, 110, seed=1)
        scores.setflags(write=False)
        for queries in ([(30, 1, 4)], [(25, 7, 6)], [(9, 9, 12)], served(name, [(30, 3, 4), (17, 5, 2), (40, 1, 7)])):
            algorithm = made(name, queries)
            found = []
            for upto in (1, 2, 13, 50, 51, 80, 110):
                found += feed(algorithm, scores[:upto])
                algorithm.check_invariants()
            assert found == expected(scores.tolist(), *queries), (name, shape, queries)
        if "time" not in entry(name).windows:
            continue
        times = sorted(streams.timed("with gaps", 110, seed=2))
        bounds = [(first, end) for _, first, end in time_windows(times, 20, 6)]
        assert answer_windows(name, scores, times, 20, 6, 3, 5) == tops_of(scores.tolist(), bounds, 3), (name, shape)
    print(name)
"""


ACROSS = """
import math
import random
from across_harness import expected, feed, made, question

assert __import__("numba").config.DISABLE_JIT
for name in ("across-oracle", "sla", "eaa", "eaa-approximate", "eaa-estimate"):
    for seed in range(12):
        draw = random.Random(seed)
        size, streams, repeats = draw.randint(1, 60), draw.randint(1, 4), draw.choice([None, 1, 2])
        kinds = ["sum", "max"] + ["latest"] * (name in ("sla", "across-oracle") or repeats == 1)
        more = {"aggregate": draw.choice(kinds), "repeats": repeats, "combine": draw.choice(["sum", "mean", "max"])}
        query = question(draw.randint(1, 4), size, draw.randint(1, size), streams, **more)
        sent = [(draw.randint(0, 40), draw.randint(-1, streams - 1), draw.randint(0, 20) / 20) for _ in range(300)]
        options = {"precision": 0.9} if name == "eaa-approximate" and seed % 2 else {}
        if seed % 3 == 0:
            sent = [(o, x, draw.choice([v, v, v, math.inf])) for o, x, v in sent]
        algorithm = made(name, query, 1.0 if seed % 3 else math.inf, **options)
        found = feed(algorithm, query, sent, (1, 2, 50, 51, 200))
        algorithm.check_invariants()
        assert name.startswith("eaa-") or found == expected(query, sent), (name, seed)
    print(name)
"""


def test_every_algorithm_across_streams_as_plain_python() -> None:
    assert _as_plain_python(ACROSS) == ["across-oracle", "sla", "eaa", "eaa-approximate", "eaa-estimate"]


def test_every_algorithm_as_plain_python() -> None:
    from test_contract import RANKED

    assert _as_plain_python(CASES) == RANKED


def _as_plain_python(cases: str) -> list[str]:
    """Run the cases without compilation; the words they print."""
    paths = [str(HERE), str(HERE.parent / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    # -W: NumPy's scalars warn where compiled code wraps around or divides by zero in silence
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", cases]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split()
