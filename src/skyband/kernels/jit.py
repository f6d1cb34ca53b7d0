"""The one decorator every kernel wears.

Compiled once and cached on disk; the GIL is released; arithmetic is IEEE (no fastmath), because NaN
and ties decide results; division by zero gives inf or NaN as in NumPy.

The cache lies beside the source, or where NUMBA_CACHE_DIR says. Where neither the package folder nor the
user's cache folder can be written, a private folder under the temporary directory is used.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def _forget_stale_cache() -> None:
    """Empty the cache beside the sources when any kernel's source has changed.

    Numba looks only at the file of the function it loads, not at those of the kernels compiled into it: after an
    edit elsewhere, a caller would go on with the old code.
    """
    here = Path(__file__).parent
    cache = here / "__pycache__"
    content = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(here.glob("*.py")))).hexdigest()
    stamp = cache / "kernels.sha256"
    try:
        if stamp.exists() and stamp.read_text() == content:
            return
        for compiled in (*cache.glob("*.nbi"), *cache.glob("*.nbc")):
            compiled.unlink(missing_ok=True)
        cache.mkdir(exist_ok=True)
        beside = cache / f"kernels.{os.getpid()}.part"
        beside.write_text(content)
        beside.replace(stamp)
    except OSError:
        return  # a folder that cannot be written is not edited either


_forget_stale_cache()

_FLAGS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}


def jit(function: Kernel) -> Kernel:
    """Compile `function` on first use; later processes load it from the cache."""
    try:
        return cast(Kernel, numba.njit(**_FLAGS)(function))
    except RuntimeError:  # numba found no folder it may write its cache to
        folder = Path(tempfile.gettempdir()) / f"skyband-cache-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        numba.config.CACHE_DIR = str(folder)
        return cast(Kernel, numba.njit(**_FLAGS)(function))


def lean(function: Kernel) -> Kernel:
    """Like `jit`, for short steps that allocate nothing: the references of the arrays handed over are not counted,
    which would cost more than such a step."""
    return cast(Kernel, numba.njit(_nrt=False, **_FLAGS)(function))


def tiny(function: Kernel) -> Kernel:
    """Like `lean`, for a few lines that are part of whatever calls them."""
    return cast(Kernel, numba.njit(_nrt=False, forceinline=True, **_FLAGS)(function))
