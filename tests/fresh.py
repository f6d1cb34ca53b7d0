"""Code in a process of its own, which has loaded nothing yet."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run_python(code: str, **environment: str) -> str:
    source = str(Path(__file__).parent.parent / "src")
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": source, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
