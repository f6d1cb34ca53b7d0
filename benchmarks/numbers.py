"""The figures skyband promises, each beside its yardstick, in one run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from time import perf_counter

import numpy as np

import skyband as sb
from benchmarks.across import across
from benchmarks.figure import Figure
from benchmarks.measure import Measurement, Setting, drive, measure, warm_up
from benchmarks.streams import names, real_folder, stream
from skyband.algorithms import build
from skyband.algorithms.contract import Plan
from skyband.schedule import all_count_windows


def figures(say: Callable[[str], None], *, quick: bool = False) -> Iterator[Figure]:
    """Measure them all; `say` tells a person what is going on."""
    warm_up(["auto", "sap", "mintopk", "strict", "shared"])
    size = 10**6
    rows = 3 * size if quick else 10 * size
    for data, slide, hold in (("uniform", 1000, 5.0), ("sine", 1000, 25.0), ("uniform", 1, 40.0)):
        scores = stream(data, rows)
        for batch in (size // 5, size // 2, size, 2 * size, rows):
            what = f"one query, {data}, n=10⁶, s={slide}, k=100, pushes of {batch:,} rows"
            say(what)
            setting = Setting(data, size, slide, 100, "auto", "none")
            best = best_of(7, lambda setting=setting, scores=scores, batch=batch: measure(setting, scores, batch=batch))
            detail = f"{best.rows_per_second / 1e6:.0f} M rows/s by {best.chosen}"
            yield Figure(what, "numpy.max over the same array", hold, best.ratio, "× its time", detail=detail)
    yield from rivals(say, quick=quick)
    yield from many_queries(say, quick=quick)
    yield from many_scores(say, quick=quick)
    yield from preferences(say, quick=quick)
    yield from across(say, quick=quick)
    yield from cold_start(say)


def best_of(tries: int, run: Callable[[], Measurement]) -> Measurement:
    """The run with the smallest ratio: noise only ever adds."""
    return min((run() for _ in range(tries)), key=lambda result: result.ratio)


STREAMS_OF_TKDE17 = {
    "uniform": "its TIMEᵘ",
    "sine": "its TIMEʳ",
    "taxi": "for its TRIP",
    "trades": "for its STOCK",
    "observations": "for its PLANET",
}
SHORT_WINDOWS = {"trades": (50_000, "5·10⁴"), "observations": (10_000, "10⁴")}
"""Of streams too short for n=10⁵: n, and how it is written."""


def said_by_tkde17(data: str) -> str:
    """Which of the paper's streams this one is or stands for, and what the paper says of SAP's time there."""
    stream = STREAMS_OF_TKDE17.get(data)
    if stream is None:
        return "no stream of the paper's"
    return f"{stream}: its own ratio" if stream.startswith("for") else f"{stream}, of which it says only: faster"


def rivals(say: Callable[[str], None], *, quick: bool) -> Iterator[Figure]:
    """SAP against MinTopK and the one-pass k-skyband at TKDE17's defaults (n=10⁵, k=100) and its slides: the structures alone,
    every window answered.

    The paper's 17 % and 3.5 % are means over n from 0.01 to 1 % of each stream, at k = 100 and s = 0.1 % of n, on its three
    real streams STOCK, TRIP and PLANET (section 6.3, figures 9(a) to 9(c)). Of TIMEᵘ and TIMEʳ (figure 10) it says only that
    SAP is the fastest. Here the ratios are asked of every stream, also of those it knows nothing of, for slides of 0.01 to
    0.1 % and one n, alone.
    """
    k = 100
    asked = [(data, 10**5, "10⁵", slide) for data in names() for slide in (10, 50, 100, 1000, 10_000)]
    if real_folder() is not None:
        asked += [(data, size, written, size // 1000) for data, (size, written) in SHORT_WINDOWS.items()]
    for data, size, written, slide in asked:
        scores = stream(data, 10**6 if not quick else 3 * 10**5)
        say(f"SAP and its rivals, {data}, s={slide}")
        nanoseconds = {}
        for algorithm in ("sap", "mintopk", "strict"):
            setting = Setting(data, size, slide, k, algorithm, "changes")
            nanoseconds[algorithm] = 1e9 * min(drive(setting, scores, batch=50_000, budget=0.5) for _ in range(3))
        for rival, paper in (("mintopk", 0.17), ("strict", 0.035)):
            hold = paper if slide <= k else 1.0
            detail = f"{nanoseconds['sap']:.1f} ns against {nanoseconds[rival]:.1f} ns a row"
            what = f"SAP, {data}, n={written}, s={slide}, k=100"
            beside = f"{rival} on the same rows ({said_by_tkde17(data)})"
            yield Figure(what, beside, hold, nanoseconds["sap"] / nanoseconds[rival], "× its time", detail=detail)


def hundred_queries(emit: str) -> list[sb.TopK]:
    """n from 2¹¹ to 2¹⁷, k around 100, s = n/100."""
    sizes = np.unique(np.geomspace(2**11, 2**17, 100).astype(int))
    return [
        sb.TopK(name=f"q{i}", k=80 + i % 41, score="x", window=sb.CountWindow(int(n), int(n) // 100), emit=emit)
        for i, n in enumerate(sizes)
    ]


def answer_every_window(queries: list[sb.TopK], scores: np.ndarray, batch: int, skip: int, *, whole: bool) -> tuple[float, int]:
    """Seconds and windows of one shared structure that answers every window of `queries`, the first `skip` rows not
    counted: by all its rows, or by those that differ from the window before. What happens to the answers is left out."""
    spans = [(query.window.size, query.window.slide) for query in queries if isinstance(query.window, sb.CountWindow)]
    sizes, slides = zip(*spans, strict=True)
    structure = build("shared", Plan(tuple(query.k for query in queries), sizes, slides))
    changes = np.ones(len(queries), bool)
    answered, begin = 0, perf_counter()
    for fed in range(0, len(scores), batch):
        if fed == skip:
            answered, begin = 0, perf_counter()
        stop = min(fed + batch, len(scores))
        windows = all_count_windows(spans, [True] * len(spans), 0, fed, stop)
        for _ in structure.advance(fed, scores[fed:stop], windows, changes=None if whole else changes):
            pass
        answered += len(windows.end)
    return perf_counter() - begin, answered


def many_queries(say: Callable[[str], None], *, quick: bool) -> Iterator[Figure]:
    """A hundred queries on one score: only the last window of each push, every window, every window's changes told."""
    scores = stream("uniform", 10**6 if quick else 4 * 10**6)
    timed = len(scores) - 200_000
    for whole, how in ((False, "by what changed"), (True, "by its k rows")):
        say(f"a hundred queries, every window answered {how}")
        runs = [answer_every_window(hundred_queries("changes"), scores, 100_000, 200_000, whole=whole) for _ in range(3)]
        seconds, windows = min(runs)
        detail = f"{windows / timed:.2f} windows a row, {1e9 * seconds / windows:.0f} ns a window, the structure alone"
        what = f"100 queries on one score, every window answered {how}"
        yield Figure(what, "5 asked, 10 the aim", 5.0, timed / seconds / 1e6, "M rows/s", at_most=False, detail=detail)
    for emit, hold in (("none", 5.0), ("changes", 0.0)):
        say(f"a hundred queries, emit={emit!r}")
        best = 0.0
        for _ in range(2):
            monitor = sb.Monitor(hundred_queries(emit))
            monitor.push({"x": scores[:200_000]})
            begin, events = perf_counter(), 0
            for at in range(200_000, len(scores), 100_000):
                events += len(monitor.push({"x": scores[at : at + 100_000]}))
            best = max(best, (len(scores) - 200_000) / (perf_counter() - begin) / 1e6)
        detail = f"{events / (len(scores) - 200_000):.2f} result rows a row, by {monitor.stats('q0')['algorithm']}"
        what = f'100 queries on one score, emit="{emit}"'
        beside = "5 asked, 10 the aim" if hold else "(no promise)"
        yield Figure(what, beside, hold, best, "M rows/s", at_most=False, detail=detail)


def many_scores(say: Callable[[str], None], *, quick: bool) -> Iterator[Figure]:
    """The nearest of 400 places at TODS15's defaults (table IX: k=9, n=4·10⁴, d=2): a row seen by a query is an evaluation."""
    size, places = 40_000, np.random.default_rng(3).random((400, 2))
    columns = np.random.default_rng(4).random((2, size + (40_000 if quick else 200_000)))
    for algorithm in ("probabilistic", "relaxed+probabilistic", "probabilistic(grid=10)", "relaxed+probabilistic(grid=10)"):
        say(f"400 queries, {algorithm}")
        queries = [
            sb.TopK(
                name=f"q{i}", k=9, score=sb.distance({"x": x, "y": y}), order="asc", emit="arrivals",
                window=sb.CountWindow(size), algorithm=algorithm,
            )
            for i, (x, y) in enumerate(places)
        ]  # fmt: skip
        best, events = 0.0, 0
        for _ in range(2):
            monitor = sb.Monitor(queries)
            monitor.push(dict(zip("xy", columns[:, :size], strict=True)))
            begin, events = perf_counter(), 0
            for at in range(size, columns.shape[1], 10_000):
                events += len(monitor.push(dict(zip("xy", columns[:, at : at + 10_000], strict=True))))
            best = max(best, len(places) * (columns.shape[1] - size) / (perf_counter() - begin))
        detail = f"{1e9 / best:.1f} ns an evaluation, {events} result rows"
        what = f"400 queries with scores of their own, {algorithm}"
        asked = "1 asked" if "grid" not in algorithm else "(no promise)"
        hold = 1.0 if "grid" not in algorithm else 0.0
        yield Figure(what, asked, hold, best / 1e8, "M evaluations in 10 ms", at_most=False, detail=detail)


class ViewsByMatrix:
    """Linear queries as a good user of NumPy would keep them: a cycle's rows scored against all queries by one matrix
    product and compared with each query's last view entry, views of k_max rows, refilled by a product over the window
    and `partition`."""

    def __init__(self, weights: np.ndarray, k: int, size: int, window: np.ndarray) -> None:
        self.weights, self.k, self.most, self.size = weights, k, 2 * k, size
        self.window, self.seen = window, window.shape[1]
        queries = len(weights)
        self.score, self.row = np.full((queries, self.most), -np.inf), np.full((queries, self.most), -1)
        for query in range(queries):
            self.refill(query)

    def refill(self, query: int) -> None:
        scores = self.weights[query] @ self.window
        best = np.argpartition(-scores, self.most)[: self.most]
        best = best[np.argsort(-scores[best])]
        self.score[query], self.row[query] = scores[best], self.seen - self.size + best

    def cycle(self, rows: np.ndarray) -> None:
        """All arrivals, then all expirations, then what has become too small."""
        scores = self.weights @ rows
        self.window = np.concatenate([self.window[:, rows.shape[1] :], rows], axis=1)
        count, self.seen = (self.row >= 0).sum(axis=1), self.seen + rows.shape[1]
        last = np.take_along_axis(self.score, count[:, None] - 1, axis=1)
        queries, columns = np.nonzero(scores >= last)
        begins = np.searchsorted(queries, np.arange(len(self.weights) + 1))
        first = self.seen - self.size
        for query in range(len(self.weights)):
            new = columns[begins[query] : begins[query + 1]]
            kept = self.row[query] >= first
            if len(new) == 0 and kept[: count[query]].all():
                continue
            score = np.concatenate([self.score[query][kept], scores[query, new]])
            row = np.concatenate([self.row[query][kept], self.seen - rows.shape[1] + new])
            order = np.argsort(-score, kind="stable")[: min(len(score), self.most)]
            self.score[query], self.row[query] = -np.inf, -1
            self.score[query, : len(order)], self.row[query, : len(order)] = score[order], row[order]
            if len(order) < self.k:
                self.refill(query)


def preferences(say: Callable[[str], None], *, quick: bool) -> Iterator[Figure]:
    """Linear queries at SIGMOD06's defaults (table 1: N=10⁶, 10⁴ arrivals a cycle, 1000 queries, k=20, d=4, independent
    attributes)."""
    size, arrivals, queries, k, cycles = 10**6, 10**4, 1000, 20, 10 if quick else 30
    generator = np.random.default_rng(6)
    weights = generator.random((queries, 4))
    warm = 5  # cycles in which memory is asked for, three times as slow as later ones
    rows = generator.random((4, size + (warm + cycles) * arrivals))
    say("1000 linear queries, by matrix product")
    rival = ViewsByMatrix(weights, k, size, rows[:, :size])
    for at in range(size, rows.shape[1], arrivals):
        if at == size + warm * arrivals:
            begin = perf_counter()
        rival.cycle(rows[:, at : at + arrivals])
    numpy_seconds = (perf_counter() - begin) / cycles
    for algorithm in ("auto", "sma", "tma"):
        say(f"1000 linear queries, {algorithm}")
        asked = [
            sb.TopK(
                name=f"q{i}", k=k, score=sb.linear(dict(zip("abcd", one, strict=True))), algorithm=algorithm,
                window=sb.CountWindow(size, slide=arrivals),
            )
            for i, one in enumerate(weights.tolist())
        ]  # fmt: skip
        monitor = sb.Monitor(asked)
        for at in range(0, size, 10 * arrivals):
            monitor.push(dict(zip("abcd", rows[:, at : at + 10 * arrivals], strict=True)))
        events = 0
        for at in range(size, rows.shape[1], arrivals):
            if at == size + warm * arrivals:
                begin = perf_counter()
            events += len(monitor.push(dict(zip("abcd", rows[:, at : at + arrivals], strict=True))))
        seconds = (perf_counter() - begin) / cycles
        for i in (0, 1, 2) if cycles >= 3 else ():
            assert monitor.top(f"q{i}")["seq"].to_pylist() == _best_rows(weights[i], rows, size, k)
        stats = monitor.stats("q0")
        detail = f"{1e3 * seconds:.1f} ms against {1e3 * numpy_seconds:.0f} ms a cycle, {stats['searches']} searches, "
        detail += f"{stats['bytes'] / 1e6:.0f} MB, {events} result rows"
        what = f"1000 linear queries, d=4, N=10⁶, 10⁴ arrivals a cycle, k=20, {algorithm}"
        hold = 10.0 if algorithm == "auto" else 1.0
        yield Figure(what, "NumPy, matrix product and views", hold, numpy_seconds / seconds, "× as fast", False, detail)


def _best_rows(weights: np.ndarray, rows: np.ndarray, size: int, k: int) -> list[int]:
    """The best k of the last `size` rows, by sorting."""
    window = rows[:, -size:]
    scores = weights[0] * window[0]
    for weight, column in zip(weights[1:], window[1:], strict=True):
        scores = scores + weight * column
    first = rows.shape[1] - size
    best: list[int] = (first + np.lexsort((-np.arange(size), -scores))[:k]).tolist()
    return best


_FIRST_PUSH = """
import time
begin = time.perf_counter()
import skyband as sb
imported = time.perf_counter() - begin
import numpy as np
begin = time.perf_counter()
monitor = sb.Monitor([sb.TopK(name="q", k=10, score="x * y", window=sb.CountWindow(1000, 10))])
monitor.push({"x": np.random.rand(5000), "y": np.random.rand(5000)})
print(imported, time.perf_counter() - begin)
"""


def cold_start(say: Callable[[str], None]) -> Iterator[Figure]:
    """How long a fresh process takes to be of use."""
    say("fresh processes")
    runs = []
    for _ in range(4):  # the first may fill the cache
        output = subprocess.run([sys.executable, "-c", _FIRST_PUSH], check=True, capture_output=True, text=True).stdout
        runs.append([float(x) for x in output.split()])
    imported, pushed = (min(column) for column in zip(*runs[1:], strict=True))
    yield Figure("import skyband in a fresh process", "–", 0.5, imported, "s")
    yield Figure("first push in a fresh process, warm cache", "–", 1.5, pushed, "s")
