"""skyband as a zip file, as `--py-files` and `addArtifacts` send it to workers."""

from __future__ import annotations

import shutil
from pathlib import Path

import skyband


def zipped(folder: Path) -> Path:
    """The package alone, without what was compiled beside it."""
    content = folder / "content"
    package = Path(skyband.__file__).parent
    shutil.copytree(package, content / "skyband", ignore=shutil.ignore_patterns("__pycache__"))
    return Path(shutil.make_archive(str(folder / "skyband"), "zip", content))
