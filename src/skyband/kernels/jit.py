"""The one decorator every kernel wears.

Compiled once and cached on disk; the GIL is released; arithmetic is IEEE (no fastmath), because NaN
and ties decide results; division by zero gives inf or NaN as in NumPy.

The cache lies beside each source, or where NUMBA_CACHE_DIR says. Where neither the package folder nor the
user's cache folder can be written, a private folder under the temporary directory is used; where there is none, every
process compiles for itself.

From a zip file, as a cluster's workers are sent it, the cache lies where NUMBA_CACHE_DIR says, or else in the user's cache
folder, in a folder named after the content of all kernels: every job has its zip at another path, and would compile anew.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import types
from numba.extending import intrinsic

from skyband.kernels.compiled_once import CompiledOnce

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
_CACHE = "__pycache__"


def _content() -> str:
    """The content of all kernels, in short."""
    return hashlib.sha256(b"".join(_sources(resources.files(__package__)))).hexdigest()


def _sources(folder: Traversable) -> Iterator[bytes]:
    """The sources in a folder, which may be part of a zip file, and below it, in the order of their names."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".py"):
            yield entry.read_bytes()
        elif entry.is_dir() and entry.name != _CACHE:
            yield from _sources(entry)


def _forget_stale_cache() -> None:
    """Empty the caches beside the sources when any kernel's source has changed.

    Numba looks only at the file of the function it loads, not at those of the kernels compiled into it: after an
    edit elsewhere, a caller would go on with the old code.
    """
    folder, content = Path(__file__).parent, _CONTENT
    cache = folder / _CACHE
    stamp = cache / "kernels.sha256"
    try:
        if stamp.exists() and stamp.read_text() == content:
            return
        for compiled in (*folder.rglob(f"{_CACHE}/*.nbi"), *folder.rglob(f"{_CACHE}/*.nbc")):
            compiled.unlink(missing_ok=True)
        cache.mkdir(exist_ok=True)
        beside = cache / f"kernels.{os.getpid()}.part"
        beside.write_text(content)
        beside.replace(stamp)
    except OSError:
        return  # a folder that cannot be written is not edited either


_ZIPPED = not Path(__file__).exists()
_CONTENT = _content()
if not _ZIPPED:
    _forget_stale_cache()

_FLAGS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


class ByContent:
    """Where numba keeps a zipped kernel: by name and line, in a folder of its module below one for this content of all."""

    def __init__(self, line: int, folder: Path) -> None:
        self.line, self.folder = line, folder

    @classmethod
    def from_function(cls, function: Any, file: str) -> ByContent | None:
        """The first folder that can be written; None, and numba does not cache, where there is none."""
        for base in (lambda: Path(numba.config.CACHE_DIR or Path.home() / ".cache" / "numba"), _private_folder):
            try:
                place = cls(function.__code__.co_firstlineno, base() / f"skyband-{_CONTENT[:20]}" / function.__module__)
                place.ensure_cache_path()
                return place
            except (OSError, RuntimeError):  # no home, or nothing that may be written
                continue
        return None

    def ensure_cache_path(self) -> None:
        """OSError where nothing can be written."""
        self.folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=self.folder).close()

    def get_cache_path(self) -> str:
        """The folder."""
        return str(self.folder)

    def get_source_stamp(self) -> str:
        """Nothing more: the folder above says it."""
        return self.folder.parent.name

    def get_disambiguator(self) -> str:
        """Tells functions of one name apart."""
        return str(self.line)


def _private_folder() -> Path:
    """A folder that nobody else can have filled, for what numba finds in a cache it runs; OSError where there is none."""
    folder = Path(tempfile.gettempdir()) / f"skyband-cache-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or not stat.S_ISDIR(found.st_mode) or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"{folder} is not this user's alone")
    return folder


def _cache_of(function: Any) -> CompiledOnce | None:
    """Where the compiled function is kept; None where nothing can be written."""
    try:
        return CompiledOnce(function)
    except RuntimeError:  # numba found no folder it may write its cache to
        try:
            numba.config.CACHE_DIR = str(_private_folder())
            return CompiledOnce(function)
        except (OSError, RuntimeError):
            return None


def _cached(function: Kernel, flags: dict[str, Any]) -> Kernel:
    kernel = numba.njit(**_FLAGS, **flags)(function)
    if not numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        if (cache := _cache_of(function)) is not None:
            kernel._cache = cache
        if "forceinline" not in flags:
            _compile_once_for_all_constants(kernel)
    return cast(Kernel, kernel)


def _compile_once_for_all_constants(kernel: Any) -> None:
    """Kernels that hand `kernel` a constant share the code of those that hand over a variable; numba would compile it for each
    constant."""
    template_for = kernel.get_call_template

    def template_for_variables(given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        return template_for(tuple(map(types.unliteral, given)), {name: types.unliteral(kind) for name, kind in named.items()})

    kernel.get_call_template = template_for_variables


def _compiled(function: Kernel, **flags: Any) -> Kernel:
    if not _ZIPPED:
        return _cached(function, flags)
    others = numba.config.CACHE_LOCATOR_CLASSES
    numba.config.CACHE_LOCATOR_CLASSES = f"{__name__}.{ByContent.__name__}"  # for this function: it is found out at once
    try:
        return _cached(function, flags)
    finally:
        numba.config.CACHE_LOCATOR_CLASSES = others


def jit(function: Kernel) -> Kernel:
    """Compile `function` on first use; later processes load it from the cache."""
    return _compiled(function)


def lean(function: Kernel) -> Kernel:
    """Like `jit`, for short steps that allocate nothing: the references of the arrays handed over are not counted,
    which would cost more than such a step."""
    return _compiled(function, _nrt=False)


def allocating(function: Kernel) -> Kernel:
    """Like `jit`, for steps that allocate and are called by lean ones, whose way to compile they would take over."""
    return _compiled(function, _nrt=True)


def tiny(function: Kernel) -> Kernel:
    """Like `lean`, for a few lines that are part of whatever calls them, and compiled for the constants it hands over."""
    return _compiled(function, _nrt=False, forceinline=True)


def _never_inlined() -> None:
    """As the first line of a lean kernel with loops: it stays a function of its own. What a tiny one calls is compiled the same
    way otherwise, part of its caller, which takes LLVM minutes where it adds up to a megabyte of code."""


@intrinsic
def _out_of_line(typingctx):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        builder.function.attributes.discard("alwaysinline")
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.none(), generate


never_inlined = _never_inlined if numba.config.DISABLE_JIT else _out_of_line  # type: ignore[attr-defined]
