"""Objects across streams: 10⁵ of them alive, tuples a second through the monitor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter

import numpy as np

import skyband as sb
from benchmarks.figure import Figure

_STREAMS, _SIZE = 3, 140_000  # of which about 10⁵ objects are alive


def tuples(rows: int, share: float = 0.5, seed: int = 7) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Object, stream and value: with the probability `share` one of the objects of the last third of a window is seen
    again, in a stream where it was not yet seen if it was seen in one."""
    generator = np.random.default_rng(seed)
    again, back = generator.random(rows) < share, generator.integers(1, _SIZE // _STREAMS, rows)
    obj, stream = np.empty(rows, np.int64), generator.integers(0, _STREAMS, rows)
    taken, fresh = set(), 0
    for row in range(rows):
        found = int(obj[row - back[row]]) if again[row] and back[row] <= row else -1
        if found < 0 or (found, int(stream[row])) in taken:
            found, fresh = fresh, fresh + 1
        obj[row] = found
        taken.add((found, int(stream[row])))
    return obj, stream, generator.random(rows)


def across(say: Callable[[str], None], *, quick: bool) -> Iterator[Figure]:
    """Every window answered and every change told, in pushes of 10⁴ tuples."""
    rows, piece = _SIZE + (100_000 if quick else 400_000), 10_000
    obj, stream, value = tuples(rows)
    alive = len(np.unique(obj[-_SIZE:]))
    texts = np.array([f"10.{o >> 16 & 255}.{o >> 8 & 255}.{o & 255}:{o}" for o in obj.tolist()])
    for algorithm, keys, slide, asked, precision in (
        ("eaa", obj, 1, 1.0, None),
        ("eaa", obj, 1000, 1.0, None),
        ("eaa", texts, 1, 1.0, None),
        ("eaa-approximate", obj, 1, 0.0, None),
        ("eaa-approximate", obj, 1, 0.0, 0.9),
        ("eaa-estimate", obj, 1, 0.0, None),
        ("sla", obj, 1, 0.0, None),
    ):
        kind = "texts" if keys is texts else "whole numbers"
        what = f"top 10 across 3 streams, {alive:,} live objects, keys {kind}, slide {slide}, {algorithm}"
        what += f", precision {precision}" if precision else ""
        say(what)
        query = sb.TopKAcross(
            name="q", k=10, key="key", stream="stream", value="value", streams=range(_STREAMS), ranges=(0, 1), repeats=1,
            window=sb.CountWindow(_SIZE, slide), algorithm=algorithm, precision=precision,
        )  # fmt: skip
        monitor, events, seconds = sb.Monitor([query]), 0, 0.0
        for at in range(0, rows, piece):
            part = slice(at, at + piece)
            begin = perf_counter()
            events += len(monitor.push({"key": keys[part], "stream": stream[part], "value": value[part]}))
            seconds += (perf_counter() - begin) * (at >= _SIZE)
        stats = monitor.stats("q")
        rate = (rows - _SIZE) / seconds
        detail = (
            f"{rate / 1e6:.2f} M tuples/s, {stats['candidates']:,} held, {stats['bytes'] / 1e6:.0f} MB, {events} result rows"
        )
        beside = "10⁵ tuples a second asked" if asked else "(no promise)"
        yield Figure(what, beside, asked, rate / 1e5, "× 10⁵ tuples a second", at_most=False, detail=detail)
    yield from skewed(say, rows, piece)


def skewed(say: Callable[[str], None], rows: int, piece: int) -> Iterator[Figure]:
    """The same where few objects have most of the tuples: the hottest nearly a fifth."""
    generator = np.random.default_rng(7)
    obj, stream = generator.zipf(1.2, rows) % 1_000_000, generator.integers(0, _STREAMS, rows)
    value = generator.random(rows)
    alive = len(np.unique(obj[-_SIZE:]))
    for algorithm, repeats, asked in (("sla", None, 0.0), ("eaa", 3, 1.0)):
        what = f"top 10 across 3 streams, Zipf 1.2, {alive:,} live objects, repeats {repeats}, slide 1, {algorithm}"
        say(what)
        query = sb.TopKAcross(
            name="q", k=10, key="key", stream="stream", value="value", streams=range(_STREAMS), ranges=(0, 1),
            repeats=repeats, window=sb.CountWindow(_SIZE), algorithm=algorithm,
        )  # fmt: skip
        monitor, seconds = sb.Monitor([query]), 0.0
        for at in range(0, rows, piece):
            part = slice(at, at + piece)
            begin = perf_counter()
            monitor.push({"key": obj[part], "stream": stream[part], "value": value[part]})
            seconds += (perf_counter() - begin) * (at >= _SIZE)
        rate = (rows - _SIZE) / seconds
        detail = f"{rate / 1e6:.2f} M tuples/s, {monitor.stats('q')['candidates']:,} held"
        yield Figure(
            what, "10⁵ tuples a second asked", asked, rate / 1e5, "× 10⁵ tuples a second", at_most=False, detail=detail
        )
