"""A standalone Spark cluster on loopback, from the installed pyspark: a master, and workers of one core each."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from pyspark.find_spark_home import _find_spark_home
from topics import free_ports

PATIENCE = 180.0


class Standalone:
    """Each worker stands for a machine: a process group of its own, with its executors; `lose` ends all of it at once."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder = folder
        port, self.page, *pages = free_ports(2 + workers)
        self.url = f"spark://127.0.0.1:{port}"
        self.processes: list[subprocess.Popen[bytes]] = []
        try:
            self._start("master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(self.page))
            self._until(lambda: self.alive() is not None)
            for page in pages:
                work = ("-d", str(folder / f"work-{page}"))
                self._start(
                    "worker.Worker", "--host", "127.0.0.1", "--webui-port", str(page), "-c", "1", "-m", "1g", *work, self.url
                )
            self._until(lambda: self.alive() == workers)
        except BaseException:
            self.stop()
            raise

    def _start(self, what: str, *arguments: str) -> None:
        home = _find_spark_home()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK", "PYTHONPATH"))}
        environment = {**kept, "SPARK_HOME": home, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
        command = [f"{home}/bin/spark-class", f"org.apache.spark.deploy.{what}", *arguments]
        with (self.folder / f"{what}-{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        self.processes.append(process)

    def alive(self) -> int | None:
        """Workers that the master counts on; None while there is no master."""
        try:
            with urlopen(f"http://127.0.0.1:{self.page}/json/", timeout=5) as page:
                return int(json.load(page)["aliveworkers"])
        except (URLError, OSError):
            return None

    def _until(self, condition) -> None:  # type: ignore[no-untyped-def]
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, "the cluster does not come up; see the logs in " + str(self.folder)
            time.sleep(0.1)

    def lose(self, worker: int) -> None:
        """The machine of a worker is gone, with all that ran on it."""
        os.killpg(self.processes[1 + worker].pid, signal.SIGKILL)
        self.processes[1 + worker].wait(PATIENCE)

    def said_by_executors(self) -> str:
        """Standard error and output of every executor and its Python workers."""
        files = [*self.folder.glob("work-*/app-*/*/stderr"), *self.folder.glob("work-*/app-*/*/stdout")]
        return "".join(file.read_text(errors="replace") for file in files)

    def stop(self) -> None:
        for process in reversed(self.processes):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(PATIENCE)
