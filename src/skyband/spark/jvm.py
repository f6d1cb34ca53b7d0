"""The JVM of a session that is started here: quiet, with little heap, and with options only where the user has said nothing.

Errors alone reach standard error, unless log4j was configured otherwise.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway

from skyband.errors import SkybandError

NEEDS_JAVA = "Spark needs Java 17 or newer: install one (on Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"

_LOGGING = Path(__file__).with_name("log4j2.properties")
_NOISE = (
    b"Using incubator modules",  # what the JVM itself says of an option that Spark gives it
    b"Streaming TransformWithStateInPandas Python worker",  # where Spark's worker is in its work, when a stream starts
)

# -- options -----------------------------------------------------------------------------------------------------

_FEW_CORES = 4
SELDOM_COMPILED = [
    "-XX:CompileThresholdScaling=8",  # of these and of loops
    "-XX:Tier3InvocationThreshold=50",
    "-XX:Tier3MinInvocationThreshold=25",
    "-XX:Tier3CompileThreshold=500",
    "-XX:Tier4InvocationThreshold=20000",
    "-XX:Tier4MinInvocationThreshold=2400",
    "-XX:Tier4CompileThreshold=60000",
]
_SAID = ("SPARK_SUBMIT_OPTS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")
_SET = ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")


def options(said: str, cores: int) -> list[str]:
    """What a JVM on a machine of so many cores begins with, besides what the user `said` in options for JVMs."""
    wanted = {
        # Stopping a query while a function of foreachBatch runs, Spark looks for an interruption in the whole Python error by a
        # pattern that recurses at every character: a default stack overflows. Memory is taken only where a stack is that deep.
        r"-Xss": ["-Xss32m"],
        # Micro-batches leave garbage and little else. G1, the usual collector, took a quarter more memory for it and a tenth
        # more processor time; its short pauses are nothing to a stream. Two collectors at once no JVM takes.
        r"-XX:[+-]Use\w+GC\b": ["-XX:+UseParallelGC"],
        # By default the JVM takes more heap rather than a hundredth of its time for garbage: here it may take a fifth.
        r"GCTimeRatio": ["-XX:GCTimeRatio=4"],
    }
    if cores <= _FEW_CORES:
        # Spark's driver runs thousands of methods a few times a micro-batch. Compiling all that are called 200 times took two
        # fifths of a short run's processor time, which the rows wait for where there are few cores. At three times as many
        # calls compiling still took a third of it, at eight times a sixth; what every row calls soon has so many. Of that
        # sixth three quarters went to the second, thorough compiler: it now gets what is called another four times as often,
        # and the first, quick one what is called a quarter as often. Micro-batches then took 0.93 times as long.
        wanted[r"CompileThresholdScaling|TieredCompilation|TieredStopAtLevel|Tier[34]\w+"] = SELDOM_COMPILED
    return [option for word, some in wanted.items() if not re.search(word, said) for option in some]


# -- starting ----------------------------------------------------------------------------------------------------


def start(wanted: Mapping[str, str]) -> None:
    """Start the JVM of a session that wants these settings, without the JVM's own remarks."""
    home = os.environ.get("JAVA_HOME")
    if not (Path(home) / "bin" / "java").exists() if home else shutil.which("java") is None:
        raise SkybandError(f"there is no Java {f'in JAVA_HOME={home}' if home else 'on PATH'}. {NEEDS_JAVA}")
    before = os.environ.get("SPARK_SUBMIT_OPTS")
    set_ = {**defaults(), **wanted}
    said = " ".join([*(os.environ.get(name, "") for name in _SAID), *(set_.get(name, "") for name in _SET)])
    added = [before] if before else []
    if "log4j" not in (before or "") and not list(_configuration().glob("log4j2.*")):
        added.append(f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}")
    os.environ["SPARK_SUBMIT_OPTS"] = " ".join([*added, *options(said, os.cpu_count() or 1)])
    reading, writing = os.pipe()
    threading.Thread(target=_pass_on, args=(reading,), name="skyband: errors of the JVM", daemon=True).start()
    try:
        gateway = launch_gateway(SparkConf(loadDefaults=False).setAll(list(wanted.items())), {"stderr": writing})
        SparkContext._ensure_initialized(gateway=gateway)
    finally:
        os.close(writing)
        os.environ.pop("SPARK_SUBMIT_OPTS", None)
        if before is not None:
            os.environ["SPARK_SUBMIT_OPTS"] = before


def defaults() -> dict[str, str]:
    """What the user's spark-defaults.conf sets."""
    file = _configuration() / "spark-defaults.conf"
    lines = [line.strip() for line in file.read_text().splitlines()] if file.is_file() else []
    pairs = (re.split(r"\s*[=\s]\s*", line, maxsplit=1) for line in lines if line and not line.startswith("#"))
    return {pair[0]: pair[1] if len(pair) > 1 else "" for pair in pairs}


def _configuration() -> Path:
    return Path(os.environ.get("SPARK_CONF_DIR") or Path(_find_spark_home()) / "conf")


def _pass_on(reading: int) -> None:
    """Standard error of the JVM and its workers, line by line, as it comes."""
    with os.fdopen(reading, "rb") as lines:
        noisy = False
        for line in lines:
            noisy = any(words in line for words in _NOISE) or (noisy and not line.strip())  # an empty line belongs to it
            if noisy:
                continue
            if hasattr(sys.stderr, "buffer"):
                sys.stderr.buffer.write(line)
            else:  # replaced by something that takes texts alone
                sys.stderr.write(line.decode(errors="replace"))
            sys.stderr.flush()
