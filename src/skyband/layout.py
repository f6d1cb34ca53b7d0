"""What a state must hold: arrays by name, each with its type and its extents.

An extent is a number where what is asked fixes it, and a name where it depends on the rows: arrays that grow together have one
name, and the state says in its header how long they were. Kernels do not look where an array ends, so that a state is held
against the layout of who takes it up before any kernel sees it.

Whoever changes a layout raises `state.FORMAT`: states of the old one are then refused as such, with what to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from skyband.errors import SkybandError, StateError

OTHER_VERSION = "it was written by another version of skyband: go on with that one, or begin anew without it"
"""What to do about a state that is whole, and not one of ours."""


class Field(NamedTuple):
    """One array."""

    dtype: str
    shape: tuple[int | str, ...]

    def __str__(self) -> str:
        return f"{self.dtype} [{', '.join(map(str, self.shape))}]"


Layout = dict[str, Field]


def fields(texts: Mapping[str, str], **known: int) -> Layout:
    """A layout in words: `float64 queries k`, the type and then the extents; those that are `known` become numbers.

    >>> fields({"score": "float64 queries room"}, queries=3)
    {'score': Field(dtype='float64', shape=(3, 'room'))}
    """
    layout = {}
    for name, text in texts.items():
        dtype, *shape = text.split()
        extents = (int(extent) if extent.isdigit() else known.get(extent, extent) for extent in shape)
        layout[name] = Field(dtype, tuple(extents))
    return layout


def alike(arrays: Mapping[str, np.ndarray], growing: Mapping[str, str]) -> Layout:
    """The layout of these arrays, of which some are `growing`: the names of their first extents, `*` for one that stays.

    >>> alike({"score": np.zeros((2, 5)), "marks": np.zeros(3, int)}, {"score": "* room"})
    {'score': Field(dtype='float64', shape=(2, 'room')), 'marks': Field(dtype='int64', shape=(3,))}
    """
    layout = {}
    for name, array in arrays.items():
        shape: list[int | str] = list(array.shape)
        for axis, extent in enumerate(growing.get(name, "").split()):
            shape[axis] = shape[axis] if extent == "*" else extent
        layout[name] = Field(array.dtype.name, tuple(shape))
    return layout


def grows(part: str, **extents: tuple[str, ...]) -> dict[str, str]:
    """For `alike`: of a part of a state, the fields whose first extent each name stands for.

    >>> grows("state", room=("score", "ordinal"))
    {'state.score': 'room', 'state.ordinal': 'room'}
    """
    return {f"{part}.{name}": extent for extent, names in extents.items() for name in names}


def extents_of(layout: Layout, arrays: Mapping[str, np.ndarray]) -> dict[str, int]:
    """How long the arrays are along the extents that have a name: what a header says."""
    return {
        extent: length
        for name, field in layout.items()
        for extent, length in zip(field.shape, arrays[name].shape, strict=True)
        if isinstance(extent, str)
    }


def check(layout: Layout, arrays: Mapping[str, np.ndarray], extents: Any) -> None:
    """StateError, naming the field, unless the arrays are those of the layout and as long as `extents` says."""
    if missing := [name for name in layout if name not in arrays]:
        raise StateError(f"this state has no field {missing[0]!r}, which should be {layout[missing[0]]}; {OTHER_VERSION}")
    if unknown := [name for name in arrays if name not in layout]:
        raise StateError(f"this state has a field {unknown[0]!r}, of which nothing is known; {OTHER_VERSION}")
    for name, field in layout.items():
        found, shape = arrays[name], []
        for extent in field.shape:
            if isinstance(extent, str) and not (isinstance(extents, dict) and type(extents.get(extent)) is int):
                raise StateError(f"this state does not say how long its extent {extent!r} is; {OTHER_VERSION}")
            shape.append(extents[extent] if isinstance(extent, str) else extent)
        if found.dtype.name != field.dtype or list(found.shape) != shape:
            wanted = Field(field.dtype, tuple(shape))
            raise StateError(
                f"the field {name!r} of this state is {Field(found.dtype.name, found.shape)} and should be {wanted}; "
                f"{OTHER_VERSION}"
            )


def check_built_alike(made_for: Any, mine: Any) -> None:
    """StateError where a state was made for something else than the structure that is to take it up."""
    if made_for != mine:
        raise StateError(f"this state was made for {made_for}, this structure for {mine}; restore it into one built alike")


@contextmanager
def reading(what: str, remedy: str = OTHER_VERSION) -> Iterator[None]:
    """StateError where what is read is not as it was written; `what` is being read."""
    try:
        yield
    except SkybandError:
        raise
    except KeyError as problem:
        raise StateError(f"this state of {what} has no {problem}; {remedy}") from problem
    except (LookupError, TypeError, ValueError, AttributeError, AssertionError, OverflowError, pa.ArrowException) as problem:
        raise StateError(f"this state of {what} cannot be read, {type(problem).__name__}: {problem}; {remedy}") from problem


def whole_number(header: Mapping[str, Any], name: str) -> int:
    """The whole number of a header; StateError when there is none."""
    found = header.get(name)
    if type(found) is not int:
        raise StateError(f"the field {name!r} of this state is {found!r} and should be a whole number; {OTHER_VERSION}")
    return found
