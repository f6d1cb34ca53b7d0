"""Reading a job file strictly: every key must be known, present and of its type, or a message says where and what to do."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from skyband.errors import SkybandError
from skyband.spark.jobs.toml_lines import Lines
from skyband.spark.jobs.toml_lines import Path as KeyPath

_KINDS: dict[type, str] = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", dict: "a table"}
_KINDS[list] = "a list"


class JobError(SkybandError, ValueError):
    """A job that cannot run as it is written: fix the file, or what it points at."""


class Document:
    """The content of a job file, and the way from a key to the line it stands on."""

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            text = file.read_text(encoding="utf-8-sig")  # some editors begin a file with a mark
        except (OSError, UnicodeDecodeError) as problem:
            reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8"
            raise JobError(f"cannot read the job file {file}: {reason}") from None
        try:
            self.content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as problem:
            raise JobError(f"{file}: this is not TOML: {problem}") from None
        self.lines = Lines(text)

    def problem(self, path: KeyPath, message: str) -> JobError:
        """An error that names the file and the line of a key."""
        return JobError(f"{self.file}, line {self.lines.of(path)}: {message}")


class Section:
    """One table of the file. Keys are taken from it one by one; what is left in the end was not asked for."""

    def __init__(self, document: Document, path: KeyPath, content: Mapping[str, Any], title: str) -> None:
        self.document, self.path, self.content, self.title = document, path, content, title
        self.known: list[str] = []

    def take(self, key: str, *kinds: type, example: str, required: bool = False) -> Any:
        """The value of a key, of one of the types; None where it is missing and need not be there."""
        self.known.append(key)
        if key not in self.content:
            if required:
                close = get_close_matches(key, self.content, 1, 0.75)
                hint = f" (is that what {close[0]!r} is for?)" if close else ""
                self.fail(f"{self.title} needs {key!r}, as in: {example}{hint}", *close)
            return None
        value = self.content[key]
        if type(value) not in kinds:
            wanted = " or ".join(_KINDS[kind] for kind in kinds)
            self.fail(f"{key!r} must be {wanted}, got {shown(value)}; write for example: {example}", key)
        return value

    def section(self, key: str, *, example: str, required: bool = False) -> Section:
        """A table within this one; an empty one where it is missing and need not be there."""
        content = self.take(key, dict, example=example, required=required)
        return Section(self.document, (*self.path, key), content or {}, f"[{key}]")

    def options(self, key: str, example: str) -> dict[str, str]:
        """A table of settings for Spark, as texts; dotted keys may be quoted or not."""
        return dict(self._flat(self.take(key, dict, example=example) or {}, (key,)))

    def _flat(self, table: Mapping[str, Any], path: KeyPath) -> Iterable[tuple[str, str]]:
        for key, value in table.items():
            if isinstance(value, dict):
                yield from ((f"{key}.{inner}", text) for inner, text in self._flat(value, (*path, key)))
            elif type(value) in (str, int, float, bool):
                yield key, str(value).lower() if isinstance(value, bool) else str(value)
            else:
                self.fail(f"the option {key!r} must be a text, a number, true or false; got {shown(value)}", *path, key)

    def finish(self, elsewhere: Mapping[str, str] | None = None) -> None:
        """Every key must have been taken. `elsewhere` says where a key that is often misplaced belongs."""
        for key in self.content:
            if key in self.known:
                continue
            close = get_close_matches(key, self.known, 1, 0.6)
            if self.path and key == "checkpoint":
                remedy = "it belongs above the tables"
            elif elsewhere and key in elsewhere:
                remedy = f"it belongs in {elsewhere[key]}"
            elif close:
                remedy = f"did you mean {close[0]!r}?"
            else:
                remedy = f"it has {', '.join(self.known)}; take {key!r} out"
            self.fail(f"{self.title} has no key {key!r}; {remedy}", key)

    def attempt(self, make: Callable[[], Any], *key: str | int) -> Any:
        """What `make` gives; its SkybandError becomes one that names the line of a key."""
        try:
            return make()
        except SkybandError as problem:
            raise self.document.problem((*self.path, *key), str(problem)) from None

    def fail(self, message: str, *key: str | int) -> NoReturn:
        """An error at the line of a key of this table."""
        raise self.document.problem((*self.path, *key), message)


def shown(value: Any) -> str:
    """A value as the file has it, or nearly."""
    if isinstance(value, bool):
        return str(value).lower()
    return "a table" if isinstance(value, dict) else repr(value)
