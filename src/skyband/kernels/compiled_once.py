"""A cache of compiled kernels that processes fill together: what one of them compiles, the others wait for and load.

Numba lets every process that does not find a kernel compile it. Spark's workers, or those of a test run, start at the same
moment and would all compile the same for a minute. Here the first locks a file until it has saved the kernel. A kernel never
waits for one that calls it, so no two processes wait for each other; a process that dies lets go; and nobody waits for ever.

Kernels are compiled in the middle of a push, which must not fail for a cache: what cannot be read there is compiled anew, and
what cannot be saved, as on a full disk, is compiled by every process.
"""

from __future__ import annotations

import importlib
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba.core.caching import FunctionCache

fcntl: Any = importlib.import_module("fcntl") if os.name == "posix" else None  # elsewhere every process compiles for itself
_PATIENCE = 120.0  # seconds; the largest kernels take a quarter of it on a machine that does nothing else
_GLANCE = 0.02


class CompiledOnce(FunctionCache):  # type: ignore[misc]  # numba has no types
    """Numba's cache of a function, locked while it is compiled."""

    _lock: int | None = None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What is saved, perhaps a moment later by another process; None, and the lock is ours, where it has to be compiled."""
        found = self._saved(sig, target_context)
        if found is not None or self._lock is not None or not self._take_lock():
            return found
        found = self._saved(sig, target_context)
        if found is not None:
            self._let_go()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save what was compiled, for those who wait."""
        try:
            with suppress(OSError):
                super().save_overload(sig, data)
        finally:
            self._let_go()

    def _saved(self, sig: Any, target_context: Any) -> Any:
        """What is saved. None: nothing, or nothing that can be read, which is forgotten."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a damaged file raises whatever reading it comes upon
            with suppress(OSError):
                self.flush()
            return None

    @property
    def _file(self) -> Path:
        return Path(self._cache_path) / f"{self._impl.filename_base}.lock"

    def _take_lock(self) -> bool:
        """Wait until nobody compiles the function; False where that cannot be told or takes too long."""
        if fcntl is None:
            return False
        try:
            self._impl.locator.ensure_cache_path()
            lock = os.open(self._file, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:
            return False
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_GLANCE)
            except OSError:  # a file system without locks
                break
            else:
                self._lock = lock
                return True
        os.close(lock)
        return False

    def _let_go(self) -> None:
        """Whoever waits for the file looks for what was saved, and finds it: it is of no use any more."""
        if self._lock is not None:
            self._file.unlink(missing_ok=True)
            fcntl.flock(self._lock, fcntl.LOCK_UN)
            os.close(self._lock)
            self._lock = None
