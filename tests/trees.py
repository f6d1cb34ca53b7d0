"""Expression trees and adversarial numbers that Hypothesis draws."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from skyband.scores.expression import ARITY, Call, Column, Number, Tree

NAN, INF = math.nan, math.inf

EDGES = (
    *(
        0.0,
        1.0,
        2.0,
        3.0,
        0.5,
        0.1,
        1 / 3,
        10.0,
        708.5,
        709.78,
        710.0,
        745.2,
        math.pi,
        math.pi / 2,
        1e15,
        2.0**53,
        2.0**63,
        1e22,
    ),
    *(
        5e-324,
        2.2250738585072014e-308,
        2.225073858507201e-308,
        1e-300,
        1e-17,
        1e154,
        1.34e154,
        1e300,
        1.7976931348623157e308,
        INF,
    ),
)
values = (
    st.sampled_from([*EDGES, *(-x for x in EDGES), NAN])
    | st.floats(allow_subnormal=True)
    | st.floats(-5, 5)
    | st.integers(-4, 4).map(float)
)
names = st.sampled_from(["x", "y", "z", "a.x", "PM2.5", "and", "a`b", "max", "größe"]) | st.text(min_size=1, max_size=5)
leaves = st.builds(Number, st.floats(allow_nan=False) | st.integers(-3, 3)) | st.builds(Column, names)
few = st.builds(Number, values.filter(lambda x: x == x)) | st.sampled_from([Column("x"), Column("y"), Column("z")])


def grown(parts: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    def call(op: str) -> st.SearchStrategy[Tree]:
        least, most = ARITY[op]
        return st.lists(parts, min_size=least, max_size=most or 4).map(lambda args: Call(op, tuple(args)))

    return st.sampled_from(sorted(ARITY)).flatmap(call)
