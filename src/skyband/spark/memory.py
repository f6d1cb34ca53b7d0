"""What a worker holds between micro-batches, so that a state need not be read from its snapshot."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

Held = TypeVar("Held")

_MOST_REMEMBERED = 1 << 30  # bytes of the states that a worker keeps in memory


class Memory(Generic[Held]):
    """States by the token of the snapshot they wrote last; the oldest go when they are too many bytes together, the newest
    stays however large it is."""

    def __init__(self) -> None:
        self._held: OrderedDict[bytes, tuple[Held, int]] = OrderedDict()
        self._bytes = 0

    def put(self, token: bytes, held: Held, size: int) -> None:
        """Hold what wrote a snapshot, and takes about so many bytes."""
        self._held[token] = (held, size)
        self._bytes += size
        while self._bytes > _MOST_REMEMBERED and len(self._held) > 1:
            _, (_, oldest) = self._held.popitem(last=False)
            self._bytes -= oldest

    def take(self, token: bytes) -> Held | None:
        """What wrote the snapshot of this token; it is then no longer here."""
        held, size = self._held.pop(token, (None, 0))
        self._bytes -= size
        return held

    def clear(self) -> None:
        """Hold nothing."""
        self._held.clear()
        self._bytes = 0
