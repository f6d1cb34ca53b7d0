"""Result rows and acknowledgements as one table, under names that cannot meet those of the input.

    query, g0.. (group columns), window bounds, event, rank, score, message, about (a place in IDENTITIES; null: an
    acknowledgement), c0.. (the row), a0.. and b0.. (the rows of a pair), k3.. (the key of an object, by its column's number)

An acknowledgement has the event "added", "cancelled" or "refused", the query's name where the command told it, the time from
which it holds as the end of the windows before it, and for a refusal the reason as `message`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa

from skyband.lanes import NEVER
from skyband.spark.control.pace import Results
from skyband.spark.control.terms import IDENTITIES, OBJECT, PAIR, Terms
from skyband.spark.flat import starts_of, time_bounds

ADDED, CANCELLED, REFUSED = "added", "cancelled", "refused"


class Acknowledgement(NamedTuple):
    """What became of a command."""

    event: str
    query: str | None
    time: int | None = None  # from when on it holds
    message: str | None = None


def bound_names(terms: Terms) -> list[str]:
    """Window bounds: of time or of counts; of both where both can be asked for."""
    both = ["window_start", "window_end", "window_start_time", "window_end_time"]
    return both if terms.timed and terms.counted else both[:2]


def answer_schema(terms: Terms) -> pa.Schema:
    """Columns of the table."""
    time = pa.int64() if terms.time is None else terms.schema.field(terms.time).type
    kinds = [pa.int64(), pa.int64()] * terms.counted + [time, time] * terms.timed
    own = list(enumerate(terms.schema.types))
    return pa.schema(
        [
            ("query", pa.string()),
            *((f"g{i}", kind) for i, kind in enumerate(terms.group_types)),
            *zip(bound_names(terms), kinds, strict=True),
            ("event", pa.string()),
            ("rank", pa.int32()),
            ("score", pa.float64()),
            ("message", pa.string()),
            ("about", pa.int8()),
            *((f"c{i}", kind) for i, kind in own),
            *((f"{side}{i}", kind) for side in "ab" * terms.pairs for i, kind in own),
            *((f"k{terms.schema.names.index(key)}", terms.schema.field(key).type) for key in terms.keys),
        ]
    )


def result_table(terms: Terms, schema: pa.Schema, results: Results, group: list[pa.Scalar]) -> pa.Table:
    """Result rows of a monitor."""
    table, rows = results.table, len(results.table)
    columns = {name: table[name] for name in ("query", "event", "score")}
    columns["rank"] = table["rank"].cast(pa.int32())
    columns |= {f"g{i}": pa.repeat(value, rows) for i, value in enumerate(group)}
    columns |= _bounds(terms, results)
    columns["about"] = pa.repeat(pa.scalar(IDENTITIES.index(results.identity), pa.int8()), rows)
    first = table.column_names.index("score") + 1
    width = len(terms.schema)
    if results.identity == OBJECT:
        columns[f"k{terms.schema.names.index(results.key)}"] = table.column(first)
    elif results.identity == PAIR:  # a_seq, the older row, b_seq, the newer one
        columns |= {f"a{i}": table.column(first + 1 + i) for i in range(width)}
        columns |= {f"b{i}": table.column(first + 2 + width + i) for i in range(width)}
    else:  # seq, the row
        columns |= {f"c{i}": table.column(first + 1 + i) for i in range(width)}
    return _filled(schema, columns, rows)


def acknowledgement_table(terms: Terms, schema: pa.Schema, said: Iterable[Acknowledgement]) -> pa.Table:
    """Acknowledgements, one row each."""
    rows = list(said)
    columns = {
        "query": pa.array([one.query for one in rows], pa.string()),
        "event": pa.array([one.event for one in rows], pa.string()),
        "message": pa.array([one.message for one in rows], pa.string()),
    }
    if terms.timed:
        name = bound_names(terms)[-1]
        times = [None if one.time is None or one.time == NEVER else one.time for one in rows]
        columns[name] = pa.array(times, pa.int64()).cast(schema.field(name).type)
    return _filled(schema, columns, len(rows))


def _bounds(terms: Terms, results: Results) -> dict[str, pa.Array]:
    end = results.table["window_end"].cast(pa.int64()).to_numpy()
    start = starts_of(results.sizes, results.table["query"], end, counted=results.counted)
    if results.counted:
        return dict(zip(bound_names(terms)[:2], (pa.array(start), pa.array(end)), strict=True))
    kind = results.table["window_end"].type
    return dict(zip(bound_names(terms)[-2:], (time_bounds(kind, start), time_bounds(kind, end)), strict=True))


def _filled(schema: pa.Schema, columns: dict[str, pa.Array], rows: int) -> pa.Table:
    """The columns in their order; those that say nothing are null."""
    return pa.table([columns.get(field.name, pa.nulls(rows, field.type)) for field in schema], schema=schema)
