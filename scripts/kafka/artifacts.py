"""Jars from the Maven registry this machine is set up for, resolved once and kept in .cache/ beside the sources.

A set of jars is what a POM file of this folder asks for. Its place is named after the POM's content, so that a change of
versions fetches anew and an interrupted fetch leaves nothing that looks complete.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".cache" / "kafka"

_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.0:copy-dependencies"
_PATIENCE = 900  # seconds for a first download


class Unavailable(RuntimeError):
    """Something a broker needs is not to be had here; the message says what, and what would help."""


def jars(name: str) -> Path:
    """The folder with the jars of NAME.pom.xml; fetched unless they are there."""
    pom = HERE / f"{name}.pom.xml"
    target = CACHE / f"{name}-{hashlib.sha256(pom.read_bytes()).hexdigest()[:12]}"
    if target.is_dir():
        return target
    maven = shutil.which("mvn")
    if maven is None:
        raise Unavailable("Kafka's jars are fetched with Maven, and there is no mvn on PATH (on Debian: apt-get install maven)")
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as beside:
        shutil.copy(pom, Path(beside) / "pom.xml")  # Maven writes beside the POM
        made = Path(beside) / "jars"
        command = [
            maven,
            "-B",
            "-q",
            "-U",
            "-f",
            f"{beside}/pom.xml",
            _PLUGIN,
            "-DincludeScope=runtime",
            f"-DoutputDirectory={made}",
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            raise Unavailable(f"Maven had not fetched the {name} after {_PATIENCE} s; is its registry reachable?") from None
        if done.returncode or not made.is_dir():
            said = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line]
            raise Unavailable(f"Maven could not fetch the {name}: {said[0] if said else f'exit code {done.returncode}'}")
        try:
            made.rename(target)
        except OSError:
            if not target.is_dir():  # else another process was first
                raise
    return target


def java() -> str:
    """The java to run: of JAVA_HOME, or on PATH."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if program is None or not Path(program).exists():
        raise Unavailable("Kafka needs Java 17 or newer: install one (on Debian: openjdk-17-jre-headless) or set JAVA_HOME")
    return program
