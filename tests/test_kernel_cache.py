"""Compiled kernels are kept where they can be, and never outlive the source they were compiled from."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import skyband

PACKAGE = Path(skyband.__file__).parent


def load_kernels(package: Path) -> None:
    """Import the kernels of another copy of skyband, as a fresh process does."""
    code = f"import sys; sys.path.insert(0, {str(package.parent)!r}); import skyband.kernels.jit"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """skyband in a folder of its own, with one kernel in its cache."""
    package = tmp_path / "skyband"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    load_kernels(package)
    for folder in (package / "kernels", package / "kernels" / "sap"):
        (folder / "__pycache__").mkdir(exist_ok=True)
        (folder / "__pycache__" / "best.collect-1.py311.nbi").write_bytes(b"compiled")
    return package


def compiled(package: Path) -> list[str]:
    return [path.name for path in (package / "kernels").rglob("__pycache__/*.nbi")]


def test_the_cache_lasts_while_no_kernel_changes(copy: Path) -> None:
    load_kernels(copy)
    assert compiled(copy) == ["best.collect-1.py311.nbi"] * 2


def test_a_change_in_any_kernel_empties_the_cache(copy: Path) -> None:
    """Numba would go on with callers compiled around the old code."""
    order = copy / "kernels" / "order.py"
    order.write_text(order.read_text() + "\n# changed\n")
    load_kernels(copy)
    assert compiled(copy) == []


def run_kernel(temporary: Path) -> list[Path]:
    """Run one kernel in a fresh process that may write to no cache folder; what is kept in the temporary one after."""
    unwritable = {"NUMBA_CACHE_DIR": "", "NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator"}
    code = "from skyband.kernels.order import outranks; assert outranks(2.0, 1, 1.0, 2)"
    environment = {**os.environ, **unwritable, "PYTHONPATH": str(PACKAGE.parent), "TMPDIR": str(temporary)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    return list(temporary.rglob("*.nbi"))


def test_where_nothing_can_be_written_a_private_folder_serves(tmp_path: Path) -> None:
    (kept,) = run_kernel(tmp_path)
    assert kept.is_relative_to(private := tmp_path / f"skyband-cache-{os.getuid()}")
    assert stat.S_IMODE(private.stat().st_mode) == 0o700


def test_a_folder_that_others_may_write_to_is_not_read(tmp_path: Path) -> None:
    """They could have put code there; kernels are compiled anew."""
    shared = tmp_path / f"skyband-cache-{os.getuid()}"
    shared.mkdir()
    shared.chmod(0o777)
    assert run_kernel(tmp_path) == []


def zipped(folder: Path) -> Path:
    """skyband as a zip file, as it is sent to a cluster's workers."""
    content = folder / "content"
    shutil.copytree(PACKAGE, content / "skyband", ignore=shutil.ignore_patterns("__pycache__"))
    return Path(shutil.make_archive(str(folder / "skyband"), "zip", content))


def run_from(archive: Path, cache_folder: Path) -> str:
    """What numba says of its cache while a fresh process runs one kernel out of the zip."""
    code = "from skyband.kernels import order; assert '.zip' in order.__file__; assert order.outranks(2.0, 1, 1.0, 2)"
    environment = {**os.environ, "PYTHONPATH": str(archive), "NUMBA_CACHE_DIR": str(cache_folder), "NUMBA_DEBUG_CACHE": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_kernels_of_a_zip_are_cached_by_their_content_whatever_its_path(tmp_path: Path) -> None:
    archive, kept = zipped(tmp_path), tmp_path / "kept"
    assert "data saved" in run_from(archive, kept)
    elsewhere = tmp_path / "another job" / "skyband.zip"
    elsewhere.parent.mkdir()
    shutil.copy(archive, elsewhere)
    said = run_from(elsewhere, kept)
    assert "data loaded" in said and "data saved" not in said
    (tmp_path / "content" / "skyband" / "kernels" / "ranked" / "panes.py").open("a").write("\n# changed\n")
    shutil.make_archive(str(elsewhere.with_suffix("")), "zip", tmp_path / "content")
    assert "data saved" in run_from(elsewhere, kept)  # any kernel's change counts: callers are compiled around others
