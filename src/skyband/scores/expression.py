"""Expressions as trees: numbers, texts, columns, and operations on them. Frozen, hashable, with one canonical text.

Two spellings of the same formula give the same tree, so queries that ask for the same score share it. The
text of a tree, `str(tree)`, parses back to that tree. Trees know nothing of how they are computed: see
`skyband.scores.evaluation`, and `skyband.scores.parser` for how they are read.

`a + b + c` is one operation on three operands, worked off from the left; so are - * / % and or. Sums of a
thousand columns are therefore flat, and depth is left for what is really nested.

A text is compared with a column, by == or !=, and does nothing else. `without_texts` turns such a comparison into a column
of its own, so that whoever computes trees meets numbers alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from math import copysign, isnan
from typing import TypeAlias

from skyband.errors import QueryError

DEEPEST = 200  # levels of operations within operations: every walk over a tree may safely be recursive
LARGEST = 100_000  # numbers, columns and operations in a tree

COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
EQUALITIES = ("==", "!=")
FOLDED = ("or", "and", "+", "-", "*", "/", "%")
"""Infix operations on two or more operands, from left to right."""

FUNCTIONS: dict[str, tuple[int, int | None]] = {
    **dict.fromkeys(("abs", "sqrt", "exp", "log", "log1p", "sin", "cos", "floor", "ceil"), (1, 1)),
    **dict.fromkeys(("min", "max"), (2, None)),
    "where": (3, 3),
}
"""Name: how many operands at least and at most."""

PRECEDENCE = {
    "or": 1,
    "and": 2,
    "not": 3,
    **dict.fromkeys(COMPARISONS, 4),
    **dict.fromkeys(("+", "-"), 5),
    **dict.fromkeys(("*", "/", "%"), 6),
    "neg": 7,
    "**": 8,
}
"""As in Python; a larger number binds more tightly."""
ATOM = 9

ARITY: dict[str, tuple[int, int | None]] = {
    **FUNCTIONS,
    **dict.fromkeys(FOLDED, (2, None)),
    **dict.fromkeys(COMPARISONS, (2, 2)),
    **dict.fromkeys(("not", "neg"), (1, 1)),
    "**": (2, 2),
}

KEYWORDS = ("and", "or", "not")
NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")


@dataclass(frozen=True, eq=False)
class Number:
    """A constant; infinite or finite, never NaN. 0.0 and -0.0 are two numbers, for 1/x tells them apart."""

    value: float
    depth = 0
    size = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", float(self.value))
        if isnan(self.value):
            raise QueryError("NaN is not a number an expression can hold; leave the term out, or use where(condition, a, b)")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Number) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[float, float]:
        return self.value, copysign(1.0, self.value)

    def columns(self) -> tuple[str, ...]:
        """The names of the columns needed: none."""
        return ()

    def __str__(self) -> str:
        sign = "-" if copysign(1.0, self.value) < 0 else ""
        magnitude = abs(self.value)
        if magnitude == float("inf"):
            return f"{sign}1e999"
        return sign + (str(int(magnitude)) if magnitude < 1e15 and magnitude.is_integer() else repr(magnitude))


@dataclass(frozen=True)
class Column:
    """A column of the stream, by name."""

    name: str
    depth = 0
    size = 1

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise QueryError(f"a column's name must be a text of at least one character, got {self.name!r}")

    def columns(self) -> tuple[str, ...]:
        """The names of the columns needed: this one."""
        return (self.name,)

    def __str__(self) -> str:
        plain = NAME.fullmatch(self.name) and self.name not in KEYWORDS
        return self.name if plain else f"`{self.name.replace('`', '``')}`"


@dataclass(frozen=True)
class Text:
    """A text that a column is compared with."""

    value: str
    depth = 0
    size = 1

    def columns(self) -> tuple[str, ...]:
        """The names of the columns needed: none."""
        return ()

    def __str__(self) -> str:
        return "'" + self.value.replace("'", "''") + "'"


@dataclass(frozen=True)
class Call:
    """An operation (an infix sign, "neg", "not" or a function's name) on operands.

    `Call("+", (Call("+", (a, b)), c))` is `Call("+", (a, b, c))`: the operands of a folded operation never
    begin with the same operation.
    """

    op: str
    args: tuple[Tree, ...]
    depth: int = field(init=False, compare=False, repr=False)
    size: int = field(init=False, compare=False, repr=False)
    _hash: int = field(init=False, compare=False, repr=False)  # kept, because trees are keys

    def __post_init__(self) -> None:
        if self.op not in ARITY:
            raise QueryError(f"{self.op!r} is not an operation; the operations are {', '.join(ARITY)}")
        first = self.args[0] if self.args else None
        if self.op in FOLDED and isinstance(first, Call) and first.op == self.op:
            object.__setattr__(self, "args", (*first.args, *self.args[1:]))
        least, most = ARITY[self.op]
        if len(self.args) < least or (most is not None and len(self.args) > most):
            raise QueryError(f"{self.op} takes {operands(self.op)}, got {len(self.args)}")
        self._check_texts()
        object.__setattr__(self, "depth", 1 + max([argument.depth for argument in self.args]))
        object.__setattr__(self, "size", 1 + sum([argument.size for argument in self.args]))
        if self.depth > DEEPEST:
            raise QueryError(f"expected at most {DEEPEST} operations within each other; write it flatter, or use linear()")
        if self.size > LARGEST:
            raise QueryError(f"expected at most {LARGEST} terms; compute a part of the expression in a column of its own")

        object.__setattr__(self, "_hash", hash((self.op, self.args)))

    def _check_texts(self) -> None:
        for place, argument in enumerate(self.args):
            if not isinstance(argument, Text):
                continue
            if self.op not in EQUALITIES:
                sign = "-" if self.op == "neg" else self.op
                raise QueryError(f"{sign!r} cannot take the text {argument}; a text is compared with a column by == or !=")
            if not isinstance(self.args[1 - place], Column):
                raise QueryError(f"the text {argument} is compared with {self.args[1 - place]}; compare it with a column")

    def __hash__(self) -> int:
        return self._hash

    def columns(self) -> tuple[str, ...]:
        """The names of the columns needed, each once, in order of appearance."""
        names: dict[str, None] = {}
        for argument in self.args:
            names.update(dict.fromkeys(argument.columns()))
        return tuple(names)

    def __str__(self) -> str:
        if self.op in FUNCTIONS:
            return f"{self.op}({', '.join(map(str, self.args))})"
        level = PRECEDENCE[self.op]
        if self.op == "neg":
            # -2 would read as the number -2
            literal = isinstance(self.args[0], Number) and not str(self.args[0]).startswith("-")
            return f"-({self.args[0]})" if literal else "-" + _within(self.args[0], level)
        if self.op == "not":
            return "not " + _within(self.args[0], level)
        if self.op == "**":
            return f"{_within(self.args[0], ATOM)} ** {_within(self.args[1], PRECEDENCE['neg'])}"
        # equal precedence needs no parentheses on the left, save for comparisons, which would form a chain
        first = _within(self.args[0], level + (self.op in COMPARISONS))
        return f" {self.op} ".join([first, *[_within(argument, level + 1) for argument in self.args[1:]]])


Tree: TypeAlias = Number | Text | Column | Call

_COMPARED = "\0"  # stands in no name that was written


@lru_cache(maxsize=1024)
def without_texts(tree: Tree) -> Tree:
    """The same where every comparison with a text is a column. `comparison` says which."""
    if not isinstance(tree, Call):
        return tree
    text, column = sorted(tree.args, key=lambda one: not isinstance(one, Text))[:2] if len(tree.args) == 2 else (None, None)
    if isinstance(text, Text):
        assert isinstance(column, Column)
        return Column(_COMPARED.join((column.name, tree.op, text.value)))
    return Call(tree.op, tuple(map(without_texts, tree.args)))


def comparison(name: str) -> tuple[str, str, str] | None:
    """Of a column that `without_texts` made: the column, the operation and the text that are compared. None: it is another."""
    column, *rest = name.split(_COMPARED, 2)
    return (column, rest[0], rest[1]) if rest else None


def operands(name: str) -> str:
    """How many operands an operation takes, in words."""
    least, most = ARITY[name]
    if most is None:
        return f"{least} or more arguments"
    return f"{least} argument{'s' if least > 1 else ''}"


def _within(tree: Tree, level: int) -> str:
    """The text of an operand where everything that binds less tightly than `level` needs parentheses."""
    text = str(tree)
    op = tree.op if isinstance(tree, Call) else "neg" if text.startswith("-") else ""
    own = PRECEDENCE.get(op, ATOM)
    return f"({text})" if own < level else text


def chooses(tree: Tree) -> bool:
    """May the tree have a value though a column of it has none? Only choices and logic look at some of their operands."""
    return isinstance(tree, Call) and (tree.op in ("where", "and", "or") or any(map(chooses, tree.args)))
