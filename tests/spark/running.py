"""`skyband run` as a process of its own, to be listened to and killed; and what its sink of files holds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import trading

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 600.0


class Run:
    """`skyband run` in a process of its own; what it says is read as it comes."""

    def __init__(self, job: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "skyband", "run", str(job), "--json"]
        self.errors = (job.parent / "errors").open("w+")
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=self.errors, text=True, start_new_session=True
        )
        self.said: list[dict[str, Any]] = []
        self.listening = threading.Thread(target=self._listen, daemon=True)
        self.listening.start()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.killed()
        self.errors.close()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(json.loads(line))

    @property
    def rows(self) -> int:
        """So far."""
        return self.said[-1]["rows"] if self.said else 0

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait, but not for a process that has ended."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert self.process.poll() is None and time.monotonic() < end, (self.said[-1:], self.complaint())
            time.sleep(0.1)

    def ended(self, with_signal: signal.Signals | None = None) -> int:
        """The exit code, once it has said everything."""
        if with_signal is not None:
            self.process.send_signal(with_signal)
        self.process.wait(PATIENCE)
        self.listening.join(PATIENCE)
        return self.process.returncode

    def killed(self) -> None:
        """It and its JVM and workers, with no time to say anything."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)

    def complaint(self) -> str:
        self.errors.seek(0)
        return self.errors.read()


def in_files(folder: Path) -> list[trading.Answer]:
    """All results of a file sink that it has committed."""
    log = folder / "_spark_metadata"
    names = {
        Path(json.loads(line)["path"]).name
        for file in log.iterdir()
        if file.name[0].isdigit()
        for line in file.read_text().splitlines()[1:]
    }
    results = [row for name in names for row in pq.read_table(folder / name).to_pylist()]
    return sorted((trading.answer(row, row["row"]) for row in results), key=str)
