"""One broker that is its own controller (KRaft), on loopback. Topics come into being when they are first written to.

Its folder holds everything: settings, data, log, and the process id, so that another process can stop it. Started
again in the same folder it has its topics back, as a broker that went away and came back.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from scripts.kafka.artifacts import Unavailable, jars, java

_CLUSTER = "c2t5YmFuZC1icm9rZXItMQ"  # any 16 bytes will do as a cluster's name
_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
num.partitions={partitions}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
"""
_METADATA, _VERSION = 3, 1


class Broker:
    """A broker in a folder; its process may have been started by another program."""

    def __init__(self, folder: Path, port: int = 9092, controller: int | None = None, partitions: int = 2) -> None:
        self.folder, self.port, self.partitions = folder.resolve(), port, partitions
        self.controller = controller if controller is not None else port + 1
        self.child: subprocess.Popen[bytes] | None = None

    @property
    def servers(self) -> str:
        """For `kafka.bootstrap.servers`."""
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        """What the broker itself says."""
        return self.folder / "broker.log"

    @property
    def settings(self) -> Path:
        """The file it is started with, by which its process is known."""
        return self.folder / "server.properties"

    @property
    def pid(self) -> int | None:
        """The process that runs with this folder's settings; None when there is none."""
        if self.child is not None:
            return self.child.pid if self.child.poll() is None else None
        try:
            number = int((self.folder / "pid").read_text())
            command = Path(f"/proc/{number}/cmdline").read_bytes()
        except (OSError, ValueError):
            return None
        return number if str(self.settings).encode() in command.split(b"\0") else None

    def start(self, patience: float = 120.0) -> Broker:
        """Start it unless it runs, and wait until it answers; Unavailable says why it does not."""
        library, program = jars("broker"), java()
        if self.pid is None:
            if answers(self.port):
                raise Unavailable(f"something else answers as Kafka on port {self.port}; choose another port")
            self.folder.mkdir(parents=True, exist_ok=True)
            data = self.folder / "data"
            text = _SETTINGS.format(port=self.port, controller=self.controller, data=data, partitions=self.partitions)
            self.settings.write_text(text)
            with self.log.open("ab") as log:
                tell = {"stdout": log, "stderr": log, "stdin": subprocess.DEVNULL}
                classes = [program, "-cp", f"{library}/*"]
                if not (data / "meta.properties").exists():
                    formatting = ["kafka.tools.StorageTool", "format", "--standalone", "-t", _CLUSTER, "-c", str(self.settings)]
                    if subprocess.run([*classes, *formatting], **tell).returncode:
                        raise Unavailable(f"the broker's folder could not be prepared: {self._last_words()}")
                memory = ["-Xms64m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]  # a small one, soon there
                command = [program, *memory, *classes[1:], "kafka.Kafka", str(self.settings)]
                self.child = subprocess.Popen(command, start_new_session=True, **tell)
            (self.folder / "pid").write_text(str(self.child.pid))
        if not _within(patience, lambda: self.pid is None or answers(self.port)) or self.pid is None:
            raise Unavailable(f"the broker does not answer on port {self.port}: {self._last_words()}; its log is {self.log}")
        return self

    def stop(self) -> bool:
        """End it in good order; False when it did not run."""
        return self._end(signal.SIGTERM)

    def kill(self) -> bool:
        """End it at once, as a machine that fails."""
        return self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> bool:
        number = self.pid
        if number is None:
            return False
        os.kill(number, how)
        if not _within(60.0, lambda: self.pid is None):
            os.kill(number, signal.SIGKILL)
            _within(10.0, lambda: self.pid is None)
        (self.folder / "pid").unlink(missing_ok=True)
        return True

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        told = [line for line in lines if "ERROR" in line or "Exception" in line] or lines
        return told[-1] if told else "it said nothing"


def answers(port: int) -> bool:
    """Whether a broker on this machine names itself when asked for the cluster's members."""
    header = struct.pack(">hhih", _METADATA, _VERSION, 1, -1)  # no client's name
    question = header + struct.pack(">i", 0)  # about no topic
    try:
        with socket.create_connection(("127.0.0.1", port), 2.0) as connection:
            connection.sendall(struct.pack(">i", len(question)) + question)
            reply = connection.makefile("rb").read(12)
    except OSError:
        return False
    if len(reply) < 12:
        return False
    _, number, members = struct.unpack(">iii", reply)
    return number == 1 and members > 0


def _within(seconds: float, condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True
