"""Commands: {"add": {...query...}} begins to answer a query, {"cancel": "name"} stops.

A command that cannot be read is a command too: it takes its place among the others and is refused there.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from skyband.errors import QueryError
from skyband.query import Query
from skyband.written_query import document_from, query_from_document, shown

ADD, CANCEL = "add", "cancel"


@dataclass(frozen=True)
class Command:
    """What somebody wants, as it came: a text, the time from which it is to hold, and its number among commands."""

    text: str | None
    time: int | None = None  # in the time column's unit; None: from its arrival on
    order: int | None = None  # where commands have a column that orders them

    def read(self) -> tuple[str, str | Query]:
        """The verb, and the query or its name; QueryError when the command says something else."""
        if self.text is None:
            raise QueryError(f"the command is null; {_FORMS}")
        document = document_from(self.text, "a command")
        if len(document) != 1 or not (set(document) & {ADD, CANCEL}):
            raise QueryError(f"a command has one key, 'add' or 'cancel', got {shown(self.text)}; {_FORMS}")
        ((verb, content),) = document.items()
        if verb == ADD:
            return ADD, query_from_document(content)
        if not isinstance(content, str) or not content:
            raise QueryError(f"cancel takes the name of a query, a text, got {shown(content)}; {_FORMS}")
        return CANCEL, content

    @cached_property
    def _document(self) -> dict[str, Any]:
        """What it says, as far as it is JSON; whether it can be obeyed is another matter."""
        try:
            return document_from(self.text, "a command")
        except QueryError:
            return {}

    @property
    def names(self) -> str | None:
        """The query it is about; None when it does not say so."""
        content = self._document.get(ADD, self._document.get(CANCEL))
        name = content.get("name") if isinstance(content, dict) else content
        return name if isinstance(name, str) and name else None

    def shard(self, shards: int) -> int:
        """Which of the shards that share the queries out among them hears of it."""
        return home(self.names, shards)

    @property
    def turn(self) -> tuple[int, int, int, str]:
        """Commands of one moment hold in this order: that of their column, where there is one; then what is cancelled makes
        room for what is added; then by their text, so that the order never depends on who read them first."""
        verb = 0 if CANCEL in self._document else 1
        return (0 if self.time is None else self.time, self.order or 0, verb, self.text or "")

    def to_json(self) -> list[Any]:
        """As JSON-able values."""
        return [self.text, self.time, self.order]


_FORMS = 'write {"add": {"name": ..., "k": ..., ...}} or {"cancel": "name"}'


def home(name: str | None, shards: int) -> int:
    """The shard that answers the query of this name; commands without one go to the first."""
    return 0 if name is None else zlib.crc32(name.encode("utf-8", "surrogatepass")) % shards
