"""Text to expression tree: a tokenizer and a precedence-climbing parser. Nothing is ever handed to Python.

The language is Python's arithmetic: `+ - * / ** %`, comparisons (chained: `0 < x <= 5`), `and or not`,
parentheses, and the functions of `skyband.scores.expression.FUNCTIONS`. A name is a column; `a.x` is the column
"a.x"; any other name goes in backticks, as in `PM2.5` (a backtick within it is doubled). A text, to compare a column with
by == or !=, goes in quotes of either kind (such a quote within it is doubled).
Every error shows the text and marks the place.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import lru_cache
from typing import NamedTuple, NoReturn

from skyband.errors import QueryError
from skyband.scores.expression import (
    COMPARISONS,
    FOLDED,
    FUNCTIONS,
    KEYWORDS,
    NAME,
    PRECEDENCE,
    Call,
    Column,
    Number,
    Text,
    Tree,
    operands,
)

_NESTED = 100  # parentheses and signs within each other: far below Python's own limit
_SHOWN = 100  # characters of a long line shown around an error

_TOKEN = re.compile(
    rf"""\s*(?:
      (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<name>{NAME.pattern})
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
    | (?P<foreign>//|&&?|\|\|?|<>|===?=|\^|~|=(?!=)|!(?!=))
    | (?P<sign>\*\*|<=|>=|==|!=|[-+*/%<>(),])
    | (?P<end>\Z)
    )""",
    re.VERBOSE,
)

_REMEDIES = {
    "//": "write floor(a / b)",
    "&": "write 'and'",
    "&&": "write 'and'",
    "|": "write 'or'",
    "||": "write 'or'",
    "<>": "write '!='",
    "===": "write '=='",
    "====": "write '=='",
    "^": "write '**' for a power",
    "~": "write 'not'",
    "=": "write '==' to compare",
    "!": "write 'not'",
    ".": "a column's name that is not a plain word goes in backticks as a whole, as in `a.PM2.5`",
    "`": "close the column's name with a second backtick",
    '"': "close the text with a second quote",
    "'": "close the text with a second quote",
}


class _Token(NamedTuple):
    kind: str  # number, name, quoted, text, sign (also and, or, not) or end
    text: str
    place: int


@lru_cache(maxsize=1024)
def parse(text: str) -> Tree:
    """The tree of an expression, or QueryError.

    >>> str(parse("price*(volume+1)"))
    'price * (volume + 1)'
    """
    if not text.strip():
        raise QueryError(f"expected an expression, found the end of {text!r}; write a column's name or a formula")
    return _Parser(text).whole()


class _Parser:
    """A text, its tokens, and how far they have been read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._tokenize()
        self.at = 0
        self.nested = 0

    def whole(self) -> Tree:
        tree = self._expression(1)
        if self._token.kind != "end":
            self._fail(self._token.place, f"expected an operator or the end, found {self._token.text!r}{self._hint()}")
        if isinstance(tree, Text):
            self._fail(0, f"the text {tree} alone says nothing; compare a column with it; a column's name goes in backticks")
        return tree

    def _tokenize(self) -> list[_Token]:
        tokens: list[_Token] = []
        place = 0
        while not tokens or tokens[-1].kind != "end":
            match = _TOKEN.match(self.text, place)
            if match is None or match.lastgroup == "foreign":
                start = place + len(self.text[place:]) - len(self.text[place:].lstrip())
                found = match["foreign"] if match else self.text[start]
                remedy = _REMEDIES.get(found, "a column's name with such a character goes in backticks")
                self._fail(start, f"{found!r} has no meaning here; {remedy}")
            kind = str(match.lastgroup)
            word = match[kind]
            tokens.append(_Token("sign" if word in KEYWORDS else kind, word, match.start(kind)))
            place = match.end()
        return tokens

    @property
    def _token(self) -> _Token:
        return self.tokens[self.at]

    def _next(self) -> _Token:
        token = self.tokens[self.at]
        self.at += 1
        return token

    def _sees(self, *signs: str) -> bool:
        return self._token.kind == "sign" and self._token.text in signs

    def _expression(self, level: int) -> Tree:
        """Everything from here that binds at least as tightly as `level`."""
        self.nested += 1
        if self.nested > _NESTED:
            self._fail(self._token.place, f"expected at most {_NESTED} levels of nesting; write the expression flatter")
        left = self._operand()
        while self._token.kind == "sign" and level <= PRECEDENCE.get(self._token.text, 0):
            sign = self._token
            if sign.text == "not":
                self._fail(sign.place, "expected an operator before 'not'; write not (a < b), or a != b")
            if sign.text in COMPARISONS:
                left = self._comparison(left)
            elif sign.text == "**":
                self._next()
                left = self._call(sign, "**", left, self._expression(PRECEDENCE["neg"]))  # from the right
            else:
                left = self._folded(left)
        self.nested -= 1
        return left

    def _folded(self, left: Tree) -> Tree:
        """`a + b + c` as one operation: collected first, so that long sums take linear time."""
        sign = self._token
        assert sign.text in FOLDED
        operands = [left]
        while self._sees(sign.text):
            self._next()
            operands.append(self._expression(PRECEDENCE[sign.text] + 1))
        return self._call(sign, sign.text, *operands)

    def _comparison(self, left: Tree) -> Tree:
        """`a < b <= c` means `a < b and b <= c`."""
        start, parts = self._token, []
        while self._sees(*COMPARISONS):
            sign = self._next()
            right = self._expression(PRECEDENCE["<"] + 1)
            parts.append(self._call(sign, sign.text, left, right))
            left = right
        return parts[0] if len(parts) == 1 else self._call(start, "and", *parts)

    def _operand(self) -> Tree:
        """A number, a column, a function's call, something in parentheses, or one of these with a sign before it."""
        token = self._next()
        if token.kind == "number":
            return Number(float(token.text))
        if token.kind == "quoted":
            if token.text == "``":
                self._fail(token.place, "expected a column's name between the backticks")
            return Column(token.text[1:-1].replace("``", "`"))
        if token.kind == "text":
            quote = token.text[0]
            return Text(token.text[1:-1].replace(2 * quote, quote))
        if token.kind == "name":
            return self._function(token) if self._sees("(") else Column(token.text)
        if token.kind == "sign":
            if token.text == "(":
                tree = self._expression(1)
                self._expect(")", f"expected an operator or ')' to close the '(' at character {token.place + 1}")
                return tree
            if token.text == "not":
                return self._not(token)
            if token.text == "+":
                return self._expression(PRECEDENCE["neg"])
            if token.text == "-":
                return self._negative(token)
        found = "the end" if token.kind == "end" else repr(token.text)
        self._fail(token.place, f"expected a number, a column, a function or '(', found {found}")

    def _not(self, token: _Token) -> Tree:
        before = self.tokens[self.at - 2] if self.at > 1 else None
        if before and before.kind == "sign" and before.text not in ("(", ",", "and", "or", "not"):
            self._fail(token.place, f"expected a number, a column or '(' after {before.text!r}; put the 'not' in parentheses")
        return self._call(token, "not", self._expression(PRECEDENCE["not"]))

    def _negative(self, token: _Token) -> Tree:
        """-2 is a number; -x, -(2) and -2 ** 2 are operations."""
        after = self.tokens[self.at + 1] if self._token.kind == "number" else None
        if after and not (after.kind == "sign" and after.text == "**"):
            return Number(-float(self._next().text))
        return self._call(token, "neg", self._expression(PRECEDENCE["neg"]))

    def _function(self, name: _Token) -> Tree:
        if name.text not in FUNCTIONS:
            close = get_close_matches(name.text.lower(), FUNCTIONS, 1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            self._fail(name.place, f"{name.text!r} is not a function; {hint}expected one of {', '.join(FUNCTIONS)}")
        self._next()
        arguments: list[Tree] = []
        if not self._sees(")"):
            arguments.append(self._expression(1))
            while self._sees(","):
                self._next()
                arguments.append(self._expression(1))
        self._expect(")", f"expected an operator, ',' or ')' to close {name.text}(")
        least, most = FUNCTIONS[name.text]
        if len(arguments) < least or (most is not None and len(arguments) > most):
            self._fail(name.place, f"{name.text} takes {operands(name.text)}, got {len(arguments)}")
        return self._call(name, name.text, *arguments)

    def _call(self, token: _Token, op: str, *arguments: Tree) -> Tree:
        try:
            return Call(op, arguments)
        except QueryError as error:
            self._fail(token.place, str(error))

    def _expect(self, sign: str, otherwise: str) -> None:
        if not self._sees(sign):
            found = "the end" if self._token.kind == "end" else repr(self._token.text)
            self._fail(self._token.place, f"{otherwise}, found {found}{self._hint()}")
        self._next()

    def _hint(self) -> str:
        """Two operands side by side are often one name with an unusual character."""
        if self._token.text.lower() in ("and", "or", "not"):
            return f"; write {self._token.text.lower()!r}"
        return "; a column's name that is not a plain word goes in backticks" if self._token.kind in ("name", "number") else ""

    def _fail(self, place: int, message: str) -> NoReturn:
        raise QueryError(f"{message}\n{_marked(self.text, place)}")


def _marked(text: str, place: int) -> str:
    """The line of `text` that holds `place`, and a caret under that place."""
    begin = text.rfind("\n", 0, place) + 1
    end = text.find("\n", place)
    line, place = text[begin : len(text) if end < 0 else end], place - begin
    if len(line) > _SHOWN:
        cut = max(0, min(place - _SHOWN // 2, len(line) - _SHOWN))
        head, tail = "… " if cut else "", " …" if cut + _SHOWN < len(line) else ""
        line, place = head + line[cut : cut + _SHOWN] + tail, place - cut + len(head)
    gap = "".join([c if c == "\t" else " " for c in line[:place]])
    return f"    {line}\n    {gap}^"
