"""Drive a ranked algorithm by hand, without a monitor: count windows over plain scores."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from skyband.algorithms import build
from skyband.algorithms.contract import Plan, Ranked
from skyband.kernels.tables import SAME, Results
from skyband.schedule import count_panes, count_windows, in_order_of_end

Answer = tuple[int, int, tuple[float, ...], tuple[int, ...]]  # query, end, scores, ordinals


def floats(drawn: list[float | None]) -> np.ndarray:
    """Scores as `streams.scores` draws them: None is unknown."""
    return np.array([math.nan if x is None else x for x in drawn], float)


def plan_of(*queries: tuple[int, int, int]) -> Plan:
    """A plan of (size, slide, k) triples."""
    sizes, slides, ks = zip(*queries, strict=True)
    return Plan(ks=ks, sizes=sizes, slides=slides)


def feed(
    algorithm: Ranked, scores: np.ndarray, cuts: Sequence[int] = (), start: int = 0, *, changes: bool = False
) -> list[Answer]:
    """Push scores[start:] in the given cuts; every answer with SAME resolved. Rows wait for a window's end.

    `changes`: answers are told by what differs, and put together here.
    """
    plan = algorithm.plan
    assert plan.sizes is not None and plan.slides is not None
    answers: list[Answer] = []
    told = np.ones(len(plan.ks), bool) if changes else None
    last: dict[int, tuple[tuple[float, ...], tuple[int, ...]]] = {}
    for q, count in enumerate(algorithm.tops.count):
        last[q] = (tuple(algorithm.tops.score[q, :count]), tuple(algorithm.tops.ordinal[q, :count]))
    for upto in [*cuts, len(scores)]:
        fed = algorithm.next
        windows = in_order_of_end(
            [count_windows(q, plan.sizes[q], plan.slides[q], start, fed, upto, last_only=False) for q in range(len(plan.ks))]
        )
        if len(windows.end) == 0:
            continue
        stop = int(windows.end[-1])
        panes = count_panes(plan.sizes[0], plan.slides[0], fed, stop) if algorithm.wants_panes else None
        for start_at, stop_at, results in algorithm.advance(fed, scores[fed:stop], windows, panes, changes=told):
            for at in range(start_at, stop_at):
                query = int(windows.query[at])
                if results.size[at] < SAME:
                    last[query] = changed(last[query], results, at)
                elif results.size[at] != SAME:
                    assert not changes
                    span = slice(int(results.begin[at]), int(results.begin[at] + results.size[at]))
                    last[query] = (tuple(results.score[span].tolist()), tuple(results.ordinal[span].tolist()))
                answers.append((query, int(windows.end[at]), *last[query]))
    return answers


def changed(
    last: tuple[tuple[float, ...], tuple[int, ...]], results: Results, at: int
) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """The answer before with what differs applied to it, every entry checked: rows that leave by their old rank, then those
    that enter by rank."""
    rows = list(zip(*last, strict=True))
    begin, entries = int(results.begin[at]), SAME - int(results.size[at])
    span = slice(begin, begin + entries)
    ranks = results.rank[span].tolist()
    told = list(zip(results.score[span].tolist(), results.ordinal[span].tolist(), strict=True))
    left = ranks.count(0)
    assert not any(ranks[:left]) and ranks[left:] == sorted(set(ranks[left:])), ranks
    assert [row for row in rows if row in told[:left]] == told[:left], (rows, told[:left])
    assert not set(told[left:]) & set(rows), (rows, told[left:])
    rows = [row for row in rows if row not in told[:left]]
    for rank, row in zip(ranks[left:], told[left:], strict=True):
        rows.insert(rank - 1, row)
        assert rows.index(row) == rank - 1
    return tuple(score for score, _ in rows), tuple(ordinal for _, ordinal in rows)


def answers_of(name: str, scores: np.ndarray, *queries: tuple[int, int, int], cuts: Sequence[int] = ()) -> list[Answer]:
    """All answers of the algorithm `name` over `scores`, checking its invariants at the end."""
    algorithm = build(name, plan_of(*queries))
    answers = feed(algorithm, np.asarray(scores, float), cuts)
    algorithm.check_invariants()
    return answers
