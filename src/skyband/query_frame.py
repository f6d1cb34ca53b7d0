"""What queries of every kind have in common: a name, a window, an order, an emission."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Protocol

from skyband.errors import QueryError
from skyband.window import CountWindow, Duration, TimeWindow, Window

ORDERS = ("desc", "asc")
EMISSIONS = ("changes", "snapshots", "arrivals", "none")


class Frame(Protocol):
    """The common part of a query."""

    @property
    def name(self) -> str: ...
    @property
    def window(self) -> Window: ...
    @property
    def order(self) -> str: ...
    @property
    def emit(self) -> str: ...


def check_frame(query: Frame) -> None:
    """QueryError when the common part of a query is not as it should be."""
    if not isinstance(query.name, str) or not query.name:
        raise QueryError(f"a query needs a name, a non-empty text; got {query.name!r}")
    if not isinstance(query.window, CountWindow | TimeWindow):
        raise QueryError(f"query {query.name!r}: window must be a CountWindow or a TimeWindow, got {query.window!r}")
    for what, value, known in (("order", query.order, ORDERS), ("emit", query.emit, EMISSIONS)):
        if value not in known:
            raise QueryError(f"query {query.name!r}: {what} must be one of {', '.join(map(repr, known))}; got {value!r}")


def whole_k(name: str, k: Any) -> int:
    """`k` as an int of at least 1."""
    if isinstance(k, bool) or not hasattr(k, "__index__"):
        raise QueryError(f"query {name!r}: k must be a whole number, got {k!r}")
    whole: int = k.__index__()
    if whole < 1:
        raise QueryError(f"query {name!r}: k must be at least 1, got {whole}")
    return whole


def window_to_json(window: Window) -> dict[str, Any]:
    """A window as JSON-able values."""
    return {"count" if isinstance(window, CountWindow) else "time": [_plain(window.size), _plain(window.slide)]}


def window_from_json(document: dict[str, Any]) -> Window:
    """What `window_to_json` gave."""
    ((kind, (size, slide)),) = document.items()
    return CountWindow(size, slide) if kind == "count" else TimeWindow(size, slide)


def _plain(span: Duration) -> int | str:
    return f"{span // timedelta(microseconds=1)} us" if isinstance(span, timedelta) else span
