"""Expressions of many queries as tables that kernels run."""

from __future__ import annotations

import numpy as np

from skyband.kernels.spatial.code import Codes
from skyband.kernels.spatial.code_blocks import LANES, MOST_PLACES, UNLIKE, WIDTH
from skyband.scores.evaluation import compiled
from skyband.scores.expression import FOLDED, Call, Column, Tree

_REDUCED = (*FOLDED, "min", "max")  # operations on any number of operands, worked off from the left
_LARGEST = 2000  # operations, columns and numbers in a tree that is looked at more closely


def codes_of(trees: list[Call | None], place: dict[str, int], blocks: bool = True) -> Codes:
    """Expressions over attributes whose numbers `place` knows, as one table; None stands for no code. `blocks`: they are to be
    run for many rows or queries at once."""
    steps, begin = [np.zeros((0, 5), np.int64)], [0]
    constants: list[float] = []
    constant_begin, places = [0], len(place)
    for tree in trees:
        if tree is not None:
            code = compiled(tree)
            own, registers = len(code.columns), len(place) + len(code.constants)
            # compiled places: columns, the result, constants, registers; here: attributes, constants, registers, the result
            new = [place[name] for name in code.columns] + [registers + code.registers]
            new += [*range(len(place), registers + code.registers)]
            assert own + 1 + len(code.constants) + code.registers == len(new)
            moved = np.array(new, np.int64)
            steps.append(np.column_stack([code.program.operation, *(moved[column] for column in code.program[1:])]))
            constants += code.constants
            places = max(places, registers + code.registers + 1)
        begin.append(begin[-1] + (0 if tree is None else len(steps[-1])))
        constant_begin.append(len(constants))
    columns = WIDTH if blocks and begin[-1] > 0 and places <= MOST_PLACES else 0
    codes = Codes(
        np.concatenate(steps),
        np.array(begin, np.int64),
        np.array(constants, np.float64),
        np.array(constant_begin, np.int64),
        np.zeros((3, places)),
        np.zeros(0, np.int64),
        np.zeros((0, 0, LANES)),
        np.zeros((places, columns)),
    )
    return _with_lanes(codes, 0)


def joined(some: Codes, more: Codes) -> Codes:
    """Those of both."""
    places = max(some.scratch.shape[1], more.scratch.shape[1])
    columns = max(some.room.shape[1], more.room.shape[1]) if places <= MOST_PLACES else 0
    codes = Codes(
        np.concatenate([some.step, more.step]),
        np.concatenate([some.begin, some.begin[-1] + more.begin[1:]]),
        np.concatenate([some.constant, more.constant]),
        np.concatenate([some.constant_begin, some.constant_begin[-1] + more.constant_begin[1:]]),
        np.zeros((3, places)),
        some.alike,
        some.lanes,
        np.zeros((places, columns)),
    )
    return _with_lanes(codes, (len(some.begin) - 1) // LANES)


def without(codes: Codes, first: int, stop: int) -> Codes:
    """The same without the queries [first, stop)."""
    step, begin = _cut_out(codes.step, codes.begin, first, stop)
    constant, constant_begin = _cut_out(codes.constant, codes.constant_begin, first, stop)
    left = codes._replace(step=step, begin=begin, constant=constant, constant_begin=constant_begin)
    return _with_lanes(left, first // LANES)


def _cut_out(values: np.ndarray, begin: np.ndarray, first: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
    """Values one behind the other, and where each one's begin, without those of the numbers [first, stop)."""
    cut = slice(int(begin[first]), int(begin[stop]))
    return np.delete(values, cut, axis=0), np.concatenate([begin[: first + 1], begin[stop + 1 :] - (cut.stop - cut.start)])


def _with_lanes(codes: Codes, since: int) -> Codes:
    """The same where it is known, from the word `since` on, which words hold nothing but expressions of the same steps, and
    their constants lie side by side. O(numbers in these words)."""
    queries = len(codes.begin) - 1
    words = -(-queries // LANES)
    alike, kept = np.full(words, UNLIKE, np.int64), min(since, len(codes.alike))
    alike[:kept] = codes.alike[:kept]
    found: dict[int, np.ndarray] = {}
    lengths, counts = np.diff(codes.begin), np.diff(codes.constant_begin)
    for word in range(kept, words) if codes.room.shape[1] else ():
        first, stop = word * LANES, min((word + 1) * LANES, queries)
        length, count = lengths[first], counts[first]
        if length == 0 or (lengths[first:stop] != length).any() or (counts[first:stop] != count).any():
            continue
        steps = codes.step[codes.begin[first] : codes.begin[stop]].reshape(stop - first, length, 5)
        if (steps == steps[0]).all():
            alike[word] = 1
            found[word] = (
                codes.constant[codes.constant_begin[first] : codes.constant_begin[stop]].reshape(stop - first, count).T
            )
    if not codes.room.shape[1]:
        alike[:] = UNLIKE
    most = max([len(one) for one in found.values()], default=0)
    lanes = np.zeros((words, max(most, codes.lanes.shape[1]), LANES))
    lanes[:kept, : codes.lanes.shape[1]] = codes.lanes[:kept]
    for word, one in found.items():
        lanes[word, : one.shape[0], : one.shape[1]] = one
    return codes._replace(alike=alike, lanes=lanes)


# expressions that fall apart --------------------------------------------------------------------------------------


def taken_apart(tree: Call) -> tuple[Call, dict[str, Call]] | None:
    """The tree with an attribute in the place of whatever reads that one alone, and what stood there, where it was more than
    the attribute. None where it is too large to be looked at.

    Leading operands of a sum that read one attribute are added first anyway, so they stand for one function of it. An attribute
    that is read by several such functions stays itself.
    """
    if tree.size > _LARGEST or len(tree.columns()) == 1:
        return None if tree.size > _LARGEST else (tree, {})
    bare: set[str] = set()
    while True:
        parts: dict[str, Tree] = {}
        several: set[str] = set()
        outer = _outer(tree, bare, parts, several)
        if not several:
            assert isinstance(outer, Call)
            return outer, {name: part for name, part in parts.items() if isinstance(part, Call)}
        bare |= several


def _outer(tree: Tree, bare: set[str], parts: dict[str, Tree], several: set[str]) -> Tree:
    names = tree.columns()
    if not names:
        return tree
    if isinstance(tree, Column) or (len(names) == 1 and names[0] not in bare):
        if parts.setdefault(names[0], tree) != tree:
            several.add(names[0])
        return Column(names[0])
    assert isinstance(tree, Call)
    operands = list(tree.args)
    if tree.op in _REDUCED:
        leading = 1
        while leading < len(operands) and len(Call(tree.op, tuple(operands[: leading + 1])).columns()) <= 1:
            leading += 1
        first = Call(tree.op, tuple(operands[:leading])) if leading > 1 else operands[0]
        if leading > 1 and first.columns() and first.columns()[0] not in bare:
            operands[:leading] = [first]
    return Call(tree.op, tuple(_outer(operand, bare, parts, several) for operand in operands))
