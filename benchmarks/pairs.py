"""Pairs beside their limits: the K-skyband against scores alone, boxes against a scan, a snapshot against copying its rows.

The structures are driven alone, every window of slide 1 answered, on the same rows in turns; time is the processor's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import skyband as sb
from repro.pairs import PairSet, Setting, asked, feed, fill, structures
from skyband import threads
from skyband.scores.pair_score import PairDoor, score_tree, where_tree

if TYPE_CHECKING:
    from benchmarks.numbers import Figure

_UNIFORM = PairSet("uniform", "uniform", 10_000)
_KINDS = ("uniform", "correlated", "anticorrelated")


def in_turns(settings: list[Setting], rows: int, step: int) -> list[float]:
    """Microseconds a row of each setting, of one score each, measured step by step in turns; the middle step counts."""
    size = settings[0].size
    points = settings[0].data.draw(size + rows, settings[0].attributes)
    built = [next(structures(setting)) for setting in settings]
    for structure, setting in zip(built, settings, strict=True):
        fill(structure, points, setting, asked(setting))
    taken: list[list[float]] = [[] for _ in settings]
    for begin in range(size, size + rows, step):
        for at, (structure, setting) in enumerate(zip(built, settings, strict=True)):
            taken[at].append(feed(structure, points, begin, min(begin + step, size + rows), asked(setting), size) / step)
    return [1e6 * float(np.median(each)) for each in taken]


def pair_figures(say: Callable[[str], None], make: Callable[..., Figure], *, quick: bool) -> Iterator[Figure]:
    """What is promised of pairs. `make` makes a figure."""
    few = (10**4, 10**5) if quick else (10**4, 10**5, 10**6)
    for size in few:
        rows, step = (4000, 500) if size == 10**4 else (1000, 100) if size == 10**5 else (120, 20)
        for k, hold in ((20, 1.3), (100, 1.6)):
            for columns in (2, 4):
                say(f"pairs, N={size:,}, K={k}, d={columns}")
                one = Setting(_UNIFORM, "scase", k, size, columns, ("s1",))
                ours, bound = in_turns([one, one_with(one, "supreme")], rows, step)
                what = f"closest pairs (s1), scase, N={size:,}, K={k}, d={columns}"
                detail = f"{ours:.1f} µs against {bound:.1f} µs a row"
                yield make(what, "supreme: scores only", hold, ours / bound, "× its time", detail=detail)
    yield from any_score(say, make)
    yield from _boxes(say, make, quick=quick)
    yield from _crossings(say, make, quick=quick)
    yield from _on_all_cores(say, make, quick=quick)
    yield from _naive(say, make)
    yield from _snapshot(say, make, quick=quick)


@dataclass(frozen=True)
class _Written(PairSet):
    """Points whose pairs have a score that is written out."""

    score: str = ""
    where: str | None = None

    def doors(self, scores: tuple[str, ...], attributes: int) -> list[PairDoor]:
        return [PairDoor(score_tree(self.score), where_tree(self.where), "asc")]


_SCORES = {  # any score that a text can say, by how much is computed a pair; with the columns it has
    "one step": ("a.u - b.u", None, 1),
    "of each side alone": ("a.u * a.v - b.u * b.v", None, 2),
    "weighted": ("2 * abs(a.u - b.u) + abs(a.v - b.v)", None, 2),
    "an auction's": ("abs(a.u - b.u) + abs(a.v - b.v) - abs(a.w - b.w)", None, 3),
    "a sensor's": ("abs(a.u - b.u) / (abs(a.v - b.v) * abs(a.w - b.w))", None, 3),
    "restricted": ("abs(a.u - b.u) + abs(a.v - b.v)", "a.w < b.w", 3),
}


def any_score(
    say: Callable[[str], None],
    make: Callable[..., Figure],
    windows: Sequence[tuple[int, int, int]] = ((10**4, 3000, 300), (10**5, 600, 60)),
) -> Iterator[Figure]:
    """The same of scores other than distances. `windows`: rows of each, rows measured, and at once."""
    for size, rows, step in windows:
        for label, (score, where, columns) in _SCORES.items():
            for k, hold in ((20, 1.3), (100, 1.6)):
                say(f"pairs, {label}, N={size:,}, K={k}")
                one = Setting(_Written("written", "uniform", size, score=score, where=where), "scase", k, size, columns)
                ours, bound = in_turns([one, one_with(one, "supreme")], rows, step)
                what = f"pairs by {score}{f' where {where}' if where else ''}, scase, N={size:,}, K={k}"
                detail = f"{ours:.1f} µs against {bound:.1f} µs a row"
                yield make(what, "supreme: scores only", hold, ours / bound, "× its time", detail=detail)


def one_with(setting: Setting, algorithm: str) -> Setting:
    """The same of another algorithm."""
    return Setting(setting.data, algorithm, setting.k, setting.size, setting.attributes, setting.scores)


def _boxes(say: Callable[[str], None], make: Callable[..., Figure], *, quick: bool) -> Iterator[Figure]:
    for kind in _KINDS:
        for score in ("s1", "s2", "s3", "s4"):
            for columns in (2, 4) if quick else (2, 3, 4):
                say(f"pairs in boxes, {kind}, {score}, d={columns}")
                one = Setting(PairSet(kind, kind, 10**5), "pairs-ta", 20, 10**5, columns, (score,))
                ours, bound, scan = in_turns([one, one_with(one, "supreme"), one_with(one, "scase")], 1000, 100)
                what = f"pairs-ta, {score}, {kind}, N=10⁵, K=20, d={columns}"
                detail = f"{ours:.1f} µs against {bound:.1f} µs a row; scase {scan:.1f} µs"
                hold = 1.0 if score in ("s1", "s2") else 0.0
                yield make(what, "supreme: scores only", hold, ours / bound, "× its time", detail=detail)


_SIZES = (5000, 10_000, 20_000, 40_000, 80_000)


def _crossings(say: Callable[[str], None], make: Callable[..., Figure], *, quick: bool) -> Iterator[Figure]:
    """Boxes cost about as much for any window, a scan is proportional to it: from where on boxes are cheaper."""
    sizes = _SIZES[:3] if quick else _SIZES
    for score in ("s1", "s2", "s3", "s4"):
        for columns in (2, 4):
            times = []
            for size in sizes:
                say(f"boxes and scan, {score}, N={size:,}, d={columns}")
                one = Setting(_UNIFORM, "pairs-ta", 20, size, columns, (score,))
                boxes, scan = in_turns([one, one_with(one, "scase")], 2000, 100)
                times.append(boxes / scan)
            what = f"pairs-ta, {score}, uniform, N={sizes[-1]:,}, K=20, d={columns}"
            detail = f"{crossing(sizes, times)}; N={sizes[0]:,} to {sizes[-1]:,}: {', '.join(f'{one:.2f}' for one in times)}"
            yield make(what, "scase", 0.0, times[-1], "× its time", detail=detail)


def crossing(sizes: Sequence[int], times: Sequence[float]) -> str:
    """From which window on what takes so many times as long takes less than once; on a line between logarithms."""
    above = [at for at, one in enumerate(times) if one >= 1.0]
    if not above:
        return f"faster below {sizes[0]:,} rows"
    if (last := above[-1]) == len(times) - 1:
        return f"slower up to {sizes[-1]:,} rows"
    rows = np.exp(np.interp(0.0, -np.log(times[last : last + 2]), np.log(sizes[last : last + 2])))
    return f"faster from {round(float(rows), -2 if rows < 10_000 else -3):,.0f} rows on"


def _on_all_cores(say: Callable[[str], None], make: Callable[..., Figure], *, quick: bool) -> Iterator[Figure]:
    """By the clock: a window's rows are looked through ahead on as many cores as there are, if there is more than one."""
    if threads.cores() == 1:
        return
    size, rows = (10**5, 640) if quick else (10**6, 192)
    for columns in (2, 4):
        say(f"pairs on all cores, d={columns}")
        setting = Setting(_UNIFORM, "scase", 20, size, columns, ("s1",))
        points = _UNIFORM.draw(size + 2 * rows, columns)
        taken = []
        for cores in (None, 1):
            threads.use_at_most(cores)
            structure = next(structures(setting))
            fill(structure, points, setting, asked(setting))
            feed(structure, points, size, size + rows, asked(setting), size)
            begin = perf_counter()
            feed(structure, points, size + rows, size + 2 * rows, asked(setting), size)
            taken.append(1e6 * (perf_counter() - begin) / rows)
        threads.use_at_most(None)
        what = f"closest pairs (s1), scase, N={size:,}, K=20, d={columns}, on {threads.cores()} cores"
        detail = f"{taken[0]:.0f} µs against {taken[1]:.0f} µs a row"
        yield make(what, "on one core", 0.0, taken[0] / taken[1], "× its time", detail=detail)


def _naive(say: Callable[[str], None], make: Callable[..., Figure]) -> Iterator[Figure]:
    say("pairs, naive")
    one = Setting(_UNIFORM, "scase", 20, 10**4, 4, ("s1",))
    ours, theirs = in_turns([one, one_with(one, "pairs-naive")], 400, 100)
    detail = f"{ours:.1f} µs against {theirs:.0f} µs a row"
    yield make("closest pairs (s1), scase, N=10⁴, K=20, d=4", "naive", 100.0, theirs / ours, "× as fast", False, detail)


def _snapshot(say: Callable[[str], None], make: Callable[..., Figure], *, quick: bool) -> Iterator[Figure]:
    """`top` of a query that is read when asked, beside Arrow's `take` of the same rows out of one table of all there are."""
    score = sb.pair_distance(list("uvwx"), "l1")
    for size, piece, texts in (
        *((10**4, 12_000, False), (10**4, 1000, False), (10**4, 10, False), (10**4, 10, True)),
        *(() if quick else ((10**6, 1000, True),)),
    ):
        say(f"pairs, a snapshot after pushes of {piece:,}")
        rows = size + size // 5
        points = _UNIFORM.draw(rows, 4)
        names = {"name": np.char.add("row ", np.arange(rows).astype(str))} if texts else {}
        table = pa.table(dict(zip("uvwx", points, strict=True)) | names)
        monitor = sb.Monitor([sb.TopKPairs(name="q", k=20, score=score, window=sb.CountWindow(size), emit="none")])
        for begin in range(0, rows, piece):
            monitor.push(table.slice(begin, piece))
        top = monitor.top("q")
        older, newer = (top.column(name).to_numpy() for name in ("a_seq", "b_seq"))
        whole = _best(lambda monitor=monitor: monitor.top("q"))  # type: ignore[misc]
        copy = _best(lambda table=table, older=older, newer=newer: (table.take(older), table.take(newer)))  # type: ignore[misc]
        what = f"top() of 20 pairs, N={size:,}{', a column of texts' if texts else ''}, rows pushed {piece:,} at a time"
        detail = f"{1e6 * whole:.0f} µs against {1e6 * copy:.0f} µs"
        yield make(what, "Arrow's take of their 40 rows", 3.0, whole / copy, "× its time", detail=detail)


def _best(call: Callable[[], object]) -> float:
    """Seconds of the processor of a call, the best of some rounds."""
    call()
    best = np.inf
    for _ in range(7):
        begin = process_time()
        for _ in range(200):
            call()
        best = min(best, (process_time() - begin) / 200)
    return float(best)
