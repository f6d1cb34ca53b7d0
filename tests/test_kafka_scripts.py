"""The broker's scripts where there is no broker: what is missing is said plainly, and nothing half-done is left behind."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from scripts.kafka import artifacts
from scripts.kafka.artifacts import Unavailable, jars
from scripts.kafka.broker import Broker, answers

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a PATH with nothing on it but what the test puts there."""
    monkeypatch.setattr(artifacts, "CACHE", tmp_path / "cache")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    return tmp_path / "cache"


def put_maven(folder: Path, script: str) -> None:
    program = folder / "bin" / "mvn"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_without_maven_the_reason_says_what_to_install(cache: Path) -> None:
    with pytest.raises(Unavailable, match=r"there is no mvn on PATH \(on Debian: apt-get install maven\)"):
        jars("broker")


def test_what_maven_cannot_fetch_is_told_in_its_words_and_leaves_nothing(cache: Path, tmp_path: Path) -> None:
    put_maven(tmp_path, "echo '[ERROR] Could not find artifact kafka'; exit 1")
    with pytest.raises(Unavailable, match=r"could not fetch the connector: \[ERROR\] Could not find artifact kafka"):
        jars("connector")
    assert not list(cache.iterdir())


def test_jars_are_fetched_once(cache: Path, tmp_path: Path) -> None:
    put_maven(tmp_path, 'for word in "$@"; do case $word in -DoutputDirectory=*) /bin/mkdir -p "${word#*=}";; esac; done')
    assert jars("broker") == jars("broker") and jars("broker").parent == cache
    put_maven(tmp_path, "exit 1")
    assert jars("broker").is_dir()


def test_without_java_the_reason_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Unavailable, match="Kafka needs Java 17"):
        artifacts.java()


def test_only_a_broker_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        talking = threading.Thread(
            target=lambda: server.accept()[0].sendall(b"220 mail.example.org ready, go ahead"), daemon=True
        )
        talking.start()
        assert not answers(port)
        talking.join()
    assert not answers(port)


def test_stop_ends_no_process_but_its_own(tmp_path: Path) -> None:
    (tmp_path / "pid").write_text(str(os.getpid()))  # a number that another process has by now
    broker = Broker(tmp_path)
    assert broker.pid is None and not broker.stop()


def test_the_command_says_what_it_can_do() -> None:
    done = subprocess.run([sys.executable, "-m", "scripts.kafka", "restart"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and all(word in done.stderr for word in ("start", "stop", "jars"))
