"""On which line of a TOML text each key stands: `tomllib` gives values only, and a message must say where to look."""

from __future__ import annotations

import re
from typing import TypeAlias

Path: TypeAlias = tuple[str | int, ...]

_KEY = re.compile(r"""[ \t]*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))[ \t]*(\.?)""")
_SKIPPED = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}' r"|'''.*?'{3,5}" r'|"(?:[^"\\\n]|\\.)*"' r"|'[^'\n]*'" r"|#[^\n]*",
    re.DOTALL,
)
"""Texts and comments: what brackets and line ends within them mean is no business of the structure."""


class Lines:
    """Lines of the keys of a TOML text that `tomllib` accepts.

    >>> lines = Lines("[a]\\nx = 1\\n[[b]]\\n[[b]]\\ny = [\\n 2]\\nz = 3\\n")
    >>> lines.of(("a", "x")), lines.of(("b", 1, "z")), lines.of(("b", 1, "missing")), lines.of(("c",))
    (2, 7, 4, 1)
    """

    def __init__(self, text: str) -> None:
        self.known: dict[Path, int] = {}
        counts: dict[Path, int] = {}  # of arrays of tables: the tables so far
        table: Path = ()
        for line, statement in _statements(text):
            if statement.startswith("["):
                listed = statement.startswith("[[")
                *above, last = _names(statement.lstrip("["))
                table = ()
                for name in above:
                    table = _entered((*table, name), counts)
                table = (*table, last)
                if listed:
                    counts[table] = counts.get(table, -1) + 1
                    self.known.setdefault(table, line)
                    table = (*table, counts[table])
                else:
                    table = _entered(table, counts)
                self.known.setdefault(table, line)
            else:
                names = _names(statement)
                for upto in range(1, len(names) + 1):
                    self.known.setdefault((*table, *names[:upto]), line)

    def of(self, path: Path) -> int:
        """The line of a key; of the nearest table around it that is written down, if it is not."""
        while path and path not in self.known:
            path = path[:-1]
        return self.known.get(path, 1)


def _entered(path: Path, counts: dict[Path, int]) -> Path:
    return (*path, counts[path]) if path in counts else path


def _names(statement: str) -> list[str]:
    """The parts of the dotted key that a statement begins with."""
    names, place = [], 0
    while match := _KEY.match(statement, place):
        names.append(next(part for part in match.group(1, 2, 3) if part is not None))
        place = match.end()
        if not match[4]:
            break
    return names


def _statements(text: str) -> list[tuple[int, str]]:
    """Table headers and key-value pairs, each with the line it begins on; a value may go on over further lines."""
    found: list[tuple[int, str]] = []
    line, began, place, start, depth = 1, 1, 0, 0, 0
    while place <= len(text):
        skipped = _SKIPPED.match(text, place)
        if skipped:
            line += skipped[0].count("\n")
            place = skipped.end()
            continue
        sign = text[place : place + 1]
        depth += (sign in "[{" and sign != "") - (sign in "]}" and sign != "")
        place += 1
        if sign == "\n" or sign == "":
            if depth == 0 or sign == "":
                statement = text[start : place - 1].strip()
                if statement and not statement.startswith("#"):
                    found.append((began, statement))
                start, began = place, line + 1
            line += 1
    return found
