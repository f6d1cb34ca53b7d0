"""Drive a ranked algorithm by hand, without a monitor: count windows over plain scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skyband.algorithms import build
from skyband.algorithms.contract import Plan, Ranked
from skyband.kernels.tables import SAME
from skyband.schedule import count_panes, count_windows, in_order_of_end

Answer = tuple[int, int, tuple[float, ...], tuple[int, ...]]  # query, end, scores, ordinals


def plan_of(*queries: tuple[int, int, int]) -> Plan:
    """A plan of (size, slide, k) triples."""
    sizes, slides, ks = zip(*queries, strict=True)
    return Plan(ks=ks, sizes=sizes, slides=slides)


def feed(algorithm: Ranked, scores: np.ndarray, cuts: Sequence[int] = (), start: int = 0) -> list[Answer]:
    """Push scores[start:] in the given cuts; every answer with SAME resolved. Rows wait for a window's end."""
    plan = algorithm.plan
    assert plan.sizes is not None and plan.slides is not None
    answers: list[Answer] = []
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
        for start_at, stop_at, results in algorithm.advance(fed, scores[fed:stop], windows, panes):
            for at in range(start_at, stop_at):
                query = int(windows.query[at])
                if results.size[at] != SAME:
                    span = slice(int(results.begin[at]), int(results.begin[at] + results.size[at]))
                    last[query] = (tuple(results.score[span].tolist()), tuple(results.ordinal[span].tolist()))
                answers.append((query, int(windows.end[at]), *last[query]))
    return answers


def answers_of(name: str, scores: np.ndarray, *queries: tuple[int, int, int], cuts: Sequence[int] = ()) -> list[Answer]:
    """All answers of the algorithm `name` over `scores`, checking its invariants at the end."""
    algorithm = build(name, plan_of(*queries))
    answers = feed(algorithm, np.asarray(scores, float), cuts)
    algorithm.check_invariants()
    return answers
