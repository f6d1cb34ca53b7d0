"""What every kind of query is checked for, and how its window is written down."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from datetime import timedelta
from numbers import Real
from typing import Any

from skyband.errors import QueryError
from skyband.window import CountWindow, Duration, TimeWindow, Window

ORDERS = ("desc", "asc")
EMISSIONS = ("changes", "snapshots", "arrivals", "none")
MOST_OF_TIME = 1_000_000  # rows or objects in the answer of a time window


class Fixed(Mapping[Any, Any]):
    """A dict as a query holds it: reads, compares and prints like the one it was given as, hashes, and does not change."""

    def __init__(self, given: Mapping[Any, Hashable]) -> None:
        self._given = dict(given)

    def __getitem__(self, name: Any) -> Any:
        return self._given[name]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)

    def __hash__(self) -> int:
        return hash(frozenset(self._given.items()))

    def __repr__(self) -> str:
        return repr(self._given)


def frozen_where(where: Any) -> Any:
    """A query's `where` that nobody else can change."""
    if not isinstance(where, Mapping):
        return where
    return Fixed({name: tuple(None if end is None else float(end) for end in span) for name, span in where.items()})


def where_to_json(where: Any) -> Any:
    """The same as JSON-able values."""
    return dict(where) if isinstance(where, Mapping) else where


def check_asked(name: Any, window: Any, **choices: tuple[Any, tuple[str, ...]]) -> None:
    """QueryError when a query has no name or no window, or when a choice, a value with those allowed, is none of them."""
    if not isinstance(name, str) or not name:
        raise QueryError(f"a query needs a name, a non-empty text; got {name!r}")
    if any("\ud800" <= letter <= "\udfff" for letter in name):
        raise QueryError(f"the name {name!r} holds half of a surrogate pair, which no result can; leave it out")
    if not isinstance(window, CountWindow | TimeWindow):
        raise QueryError(f"query {name!r}: window must be a CountWindow or a TimeWindow, got {window!r}")
    for what, (value, known) in choices.items():
        if value not in known:
            raise QueryError(f"query {name!r}: {what} must be one of {', '.join(map(repr, known))}; got {value!r}")


def whole_k(name: str, k: Any, window: Window | None = None) -> int:
    """`k` as a whole number; QueryError when it is none, or below 1, or so large that room for the answers of `window`, of
    which nobody knows how many rows it will hold, should not be set aside."""
    if isinstance(k, bool) or not hasattr(k, "__index__"):
        raise QueryError(f"query {name!r}: k must be a whole number, got {k!r}")
    if k.__index__() < 1:
        raise QueryError(f"query {name!r}: k must be at least 1, got {k}")
    if isinstance(window, TimeWindow) and k.__index__() > MOST_OF_TIME:
        raise QueryError(
            f"query {name!r}: k={k} of a time window is more than {MOST_OF_TIME:,}, which room is set aside for; ask "
            "for fewer, for a Threshold, which has as many as there are, or over a CountWindow, of which k is at most the rows"
        )
    return int(k.__index__())


def is_number(value: object) -> bool:
    """NumPy's numbers are some too, truth values are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def window_to_json(window: Window) -> dict[str, list[int | str]]:
    """A window as JSON-able values."""
    kind = "count" if isinstance(window, CountWindow) else "time"
    return {kind: [_plain(window.size), _plain(window.slide)]}


def window_from_json(document: dict[str, list[Any]]) -> Window:
    """What `window_to_json` gave."""
    ((kind, (size, slide)),) = document.items()
    return CountWindow(size, slide) if kind == "count" else TimeWindow(size, slide)


def _plain(span: Duration) -> int | str:
    return f"{span // timedelta(microseconds=1)} us" if isinstance(span, timedelta) else span
