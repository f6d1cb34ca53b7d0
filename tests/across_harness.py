"""Drive an algorithm across streams by hand, without a monitor: count windows over tuples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from across_reference import Asked, asked, counting, ranked
from skyband.algorithms import load
from skyband.algorithms.across.contract import Across, AcrossPlan
from skyband.kernels.across.tables import ANY_NUMBER, Tuples
from skyband.kernels.tables import SAME
from skyband.schedule import count_windows

Sent = tuple[int, int, float]  # object, stream (-1: counts for nothing), value
Answer = tuple[int, tuple[float, ...], tuple[int, ...]]  # end, scores, objects
COMBINES = {"sum": 0, "mean": 1, "max": 2}
AGGREGATES = {"sum": 0, "max": 1, "latest": 2}


def question(k: int, size: int, slide: int, streams: int, **more: Any) -> Asked:
    return asked("q", k, "count", size, slide, range(streams), **more)


def made(name: str, query: Asked, high: float = 1.0, **options: Any) -> Any:
    repeats = ANY_NUMBER if query.repeats is None else query.repeats
    highs = (high,) * len(query.streams)
    plan = AcrossPlan(query.k, COMBINES[query.combine], AGGREGATES[query.aggregate], repeats, highs)
    cls: Any = load(name)
    return cls(plan, **options)


def expected(query: Asked, sent: Sequence[Sent]) -> list[Answer]:
    rows = [(i, i, {"key": o, "stream": x, "value": v if x >= 0 else None}) for i, (o, x, v) in enumerate(sent)]
    facts, found = counting(query, rows), []
    for end in range(query.slide, len(sent) + 1, query.slide):
        objects = ranked(query, [fact for fact in facts if end - query.size <= fact.position < end])[: query.k]
        found.append((end, tuple(score for score, _ in objects), tuple(fact.key for _, fact in objects)))
    return found


def tuples_of(query: Asked, sent: Sequence[Sent], begin: int) -> Tuples:
    obj = np.array([o for o, _, _ in sent], np.int64)
    stream = np.array([x for _, x, _ in sent], np.int64)
    ordinal = begin + np.arange(len(sent))
    reach = np.maximum((ordinal // query.slide + 1) * query.slide - query.size, 0)
    hashes = (obj.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    hashes ^= hashes >> np.uint64(29)
    hashes *= np.uint64(0xBF58476D1CE4E5B9)
    hashes ^= hashes >> np.uint64(32)
    return Tuples(obj, stream, np.array([v for _, _, v in sent], float), reach, hashes)


def feed(algorithm: Across, query: Asked, sent: Sequence[Sent], cuts: Sequence[int] = ()) -> list[Answer]:
    """All answers to the tuples not taken yet, handed over in the given cuts."""
    found: list[Answer] = []
    size = int(algorithm.top.size[0])
    last = (tuple(algorithm.top.score[:size].tolist()), tuple(algorithm.top.obj[:size].tolist()))
    for upto in [*cuts, len(sent)]:
        begin = max(algorithm.next, 0)
        windows = count_windows(0, query.size, query.slide, 0, begin, upto, last_only=False)
        tuples = tuples_of(query, sent[begin:upto], begin)
        for start, stop, answers in algorithm.advance(begin, tuples, windows, max(o for o, _, _ in sent) + 1):
            for at in range(start, stop):
                if answers.size[at] != SAME:
                    span = slice(int(answers.begin[at]), int(answers.begin[at] + answers.size[at]))
                    last = (tuple(answers.score[span].tolist()), tuple(answers.obj[span].tolist()))
                found.append((int(windows.end[at]), *last))
    return found


def sent_by(streams: int, rows: int, share: float, recent: int, seed: int) -> list[Sent]:
    """CIKM09's generator: with the probability `share` an object of another stream's last `recent` tuples is seen again."""
    generator = np.random.default_rng(seed)
    sent: list[Sent] = []
    seen: list[list[int]] = [[] for _ in range(streams)]
    known: list[set[int]] = [set() for _ in range(streams)]
    fresh = 0
    for x, again, value in zip(
        generator.integers(0, streams, rows), generator.random(rows) < share, generator.random(rows), strict=True
    ):
        others = [o for y in range(streams) if y != x for o in seen[y][-recent:] if o not in known[x]] if again else []
        obj = others[int(generator.integers(len(others)))] if others else fresh
        fresh += not others
        seen[x].append(obj)
        known[x].add(obj)
        sent.append((obj, int(x), float(value)))
    return sent


SELDOM = ((0.0, 1.0), (0.001, math.inf), (0.01, math.inf), (0.2, math.inf), (0.05, 1.5e308))


def values_with(generator: np.random.Generator, rows: int, seldom: tuple[float, float]) -> np.ndarray:
    """Values between 0 and 1, of which a share is another: one of SELDOM, infinite, or so large that sums of it are."""
    share, other = seldom
    values: np.ndarray = np.where(generator.random(rows) < share, other, generator.random(rows))
    return values


SENT = sent_by(3, 2500, 0.5, 30, 1)


def right(algorithm: Any, query: Any, sent: list[Sent], after: int) -> float:
    """The share of the answers' objects, from the window `after` on, that are right."""
    found = feed(algorithm, query, sent)[after:]
    shares = [len({*a[2]} & {*b[2]}) / len(b[2]) for a, b in zip(found, expected(query, sent)[after:], strict=True)]
    return float(np.mean(shares))
