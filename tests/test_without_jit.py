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

CROWDS = """
import numpy as np
from skyband.algorithms.spatial.asked import Asked, resolution
from skyband.algorithms.spatial.crowd import Crowd
from skyband.scores.score import as_tree, distance, linear

assert __import__("numba").config.DISABLE_JIT
SCORES = {  # by the columns they read
    ("x",): [(as_tree("x * abs(x - 0.3)"), lambda x: x * np.abs(x - 0.3)), (linear({"x": -2.0}), lambda x: -2.0 * x)],
    ("x", "y"): [
        (distance({"x": 0.2, "y": 0.7}), lambda x, y: np.sqrt((x - 0.2) * (x - 0.2) + (y - 0.7) * (y - 0.7))),
        (as_tree("x * x + 3 * y"), lambda x, y: x * x + 3.0 * y),
        (as_tree("abs(x - y) - x"), lambda x, y: np.abs(x - y) - x),
    ],
}
for columns, scores in SCORES.items():
    for size, core in ((40, "tma"), (40, "sma"), (1_000_000, "tma"), (1_000_000, "sma")):  # the last have fine grids
        crowd, slide = Crowd(columns, resolution(size, len(columns))), 7
        crowd.add(*[Asked(score, order, 3, size, slide, core) for score, _ in scores for order in ("desc", "asc")])
        rows, last = np.random.default_rng(len(columns)).random((len(columns), 210)), {}
        for begin in range(0, rows.shape[1], 30):
            told = {}
            for query, end, results in crowd.push(rows[:, begin : begin + 30]):
                for q, e, first, count in zip(*(column.tolist() for column in (query, end, *results[:2]))):
                    told[q, e] = results.ordinal[first : first + count].tolist()
            for q in range(2 * len(scores)):
                values = scores[q // 2][1](*rows) * (-1 if q % 2 else 1)
                for end in range(begin // slide * slide + slide, begin + 31, slide):
                    last[q] = told.get((q, end), last.get(q))
                    window = np.arange(max(end - size, 0), end)
                    assert last[q] == window[np.argsort(-values[window])][:3].tolist(), (columns, size, core, q, end)
        print("".join(columns), size, core)
"""


def test_crowds_as_plain_python() -> None:
    assert len(_as_plain_python(CROWDS)) == 3 * 8


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
