"""Processes that need the same kernel at the same moment: one compiles it, the others load what it saved."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import config
from numba.core.errors import TypingError

from skyband.kernels import compiled_once
from skyband.kernels.jit import jit

SLOW = """
import sys, time
from pathlib import Path
import numpy as np
from skyband.kernels.jit import jit

@jit
def kernel(x):
    return np.sort(x)[::-1].cumsum().sum()

Path(sys.argv[1]).touch()
while not Path(sys.argv[2]).exists():
    time.sleep(0.001)
assert kernel(np.arange(4.0)) == 20.0
print(sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values()))
"""


def start(script: Path, *arguments: Path) -> subprocess.Popen[str]:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(script.parent / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen([sys.executable, script, *arguments], env=environment, stdout=subprocess.PIPE, text=True)


def test_one_of_them_compiles_and_nothing_is_left_behind(tmp_path: Path) -> None:
    script, begin = tmp_path / "script.py", tmp_path / "begin"
    script.write_text(SLOW)
    processes = [start(script, tmp_path / f"ready{i}", begin) for i in range(3)]
    while not all((tmp_path / f"ready{i}").exists() for i in range(3)):
        assert all(process.poll() is None for process in processes)
    begin.touch()
    said = sorted(process.communicate(timeout=120)[0].split() for process in processes)
    assert said == [["0", "1"], ["1", "0"], ["1", "0"]]  # hits and misses of each
    assert list((tmp_path / "cache").rglob("*.nbc")) and not list((tmp_path / "cache").rglob("*.lock"))


def plus_one(x):  # type: ignore[no-untyped-def]
    return x + 1.0


def hits_and_misses() -> tuple[int, int]:
    """Of a kernel that has not been read yet, as in another process."""
    kernel = jit(plus_one)
    assert kernel(1.0) == 2.0
    return sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values())


@pytest.mark.parametrize("damaged", ["*.nbi", "*.nbc"])
@pytest.mark.parametrize("content", [b"", b"no kernel"])
def test_what_cannot_be_read_is_compiled_anew(
    damaged: str, content: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    assert [hits_and_misses() for _ in range(2)] == [(0, 1), (1, 0)]
    (file,) = tmp_path.rglob(damaged)
    file.write_bytes(content)
    assert [hits_and_misses() for _ in range(2)] == [(0, 1), (1, 0)]


def test_what_cannot_be_saved_works_all_the_same(tmp_path: Path) -> None:
    """As on a full disk."""
    script, begin = tmp_path / "script.py", tmp_path / "begin"
    script.write_text("import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n" + SLOW)
    begin.touch()
    process = start(script, tmp_path / "ready", begin)
    assert process.communicate(timeout=120)[0].split() == ["0", "1"] and process.returncode == 0
    assert not list((tmp_path / "cache").rglob("*.nbc"))


def test_a_kernel_that_cannot_be_compiled_keeps_nobody_waiting_for_ever(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiled_once, "_PATIENCE", 0.1)

    def fails(x):  # type: ignore[no-untyped-def]
        return x.nothing_of_the_kind

    for one in (jit(fails), jit(fails)):  # the second finds the first's lock
        with pytest.raises(TypingError):
            one(np.zeros(1))
