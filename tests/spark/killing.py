"""A streaming job in a process of its own, killed between two of its micro-batches and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

_PATIENCE = 400.0
_ROOT = Path(__file__).resolve().parents[2]


def started(script: str, *arguments: object) -> subprocess.Popen[bytes]:
    """A script of this folder, with the sources as they are here."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(_ROOT / "src"), str(_ROOT / "tests")])}
    return subprocess.Popen(
        [sys.executable, script, *map(str, arguments)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def committed(checkpoint: Path) -> int:
    """Micro-batches that a checkpoint has seen the end of."""
    return len([path for path in (checkpoint / "commits").glob("*") if path.name.isdigit()])


def killed(process: subprocess.Popen[bytes], checkpoint: Path, upto: int) -> None:
    """Kill it, its JVM and its workers once so many micro-batches are committed."""
    deadline = time.monotonic() + _PATIENCE
    while committed(checkpoint) < upto:
        assert process.poll() is None and time.monotonic() < deadline, (process.communicate()[0] or b"").decode()[-2000:]
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def ended(process: subprocess.Popen[bytes]) -> None:
    """Wait until it has done all there is to do."""
    output = process.communicate(timeout=_PATIENCE)[0]
    assert process.returncode == 0, output.decode()[-3000:]


def killed_once(script: str, checkpoint: Path, batches: int, *arguments: object) -> None:
    """Run a script of so many micro-batches to its end, with a kill after the third."""
    killed(started(script, *arguments), checkpoint, 3)
    assert 3 <= committed(checkpoint) < batches
    ended(started(script, *arguments))
