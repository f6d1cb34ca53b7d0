"""A Spark session that suits this work: one function sets what matters and overrides nothing the user set.

A JVM that is started here is quiet: errors alone reach standard error, unless log4j was configured otherwise.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from skyband.errors import SkybandError

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
DAEMON = "skyband.spark.daemon"

_LOGGING = Path(__file__).with_name("log4j2.properties")
_NOISE = (
    b"Using incubator modules",  # what the JVM itself says of an option that Spark gives it
    b"Streaming TransformWithStateInPandas Python worker",  # where Spark's worker is in its work, when a stream starts
)


def settings(cores: int | None = None, partitions: int | None = None, *, local: bool = False) -> dict[str, str]:
    """What a session should have, each with the reason; `cores` as in local[cores], `partitions` as many unless given; `local`:
    Spark is one process, as under local[cores]."""
    shown = str(partitions or cores or os.cpu_count() or 2)
    if local:
        # workers are forked from a process that has loaded what they need; on a cluster the nodes would have to know the module
        one_process = {"spark.python.daemon.module": DAEMON}
        # on a local disk the usual one starts a process to look at a file, forty times a micro-batch; both look whether
        # a file is there and then rename another to it, which on file systems of clusters the usual one does in one step
        one_process["spark.sql.streaming.checkpointFileManagerClass"] = FILES
    else:
        one_process = {}
    return one_process | {
        # workers must run this very Python: any other lacks skyband and its kernels
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
        # state on disk with incremental checkpoints instead of on the heap, rewritten whole
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # one state store per partition and batch: 200 of them make a small stream slow, and without groups one is enough
        "spark.sql.shuffle.partitions": shown,
        # windows are counted from the epoch; times read the same on every machine
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Arrow batches have at most 10,000 rows (maxRecordsPerBatch). Asking after each how many bytes there are takes a third
        # of the time of handing rows to Python; what travels here is small (`packets`). Rows of more than 20 kB need a bound
        "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
        "spark.ui.showConsoleProgress": "false",
        "spark.ui.enabled": "false",
    }


def session(
    name: str = "skyband",
    *,
    cores: int | None = None,
    partitions: int | None = None,
    config: Mapping[str, Any] | None = None,
) -> SparkSession:
    """A session on this machine with `settings`; `config` wins over them, and a session that runs already over both.

    >>> import skyband.spark as sks
    >>> spark = sks.session(cores=2, config={"spark.sql.shuffle.partitions": 8})  # doctest: +SKIP
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        return configure(running, cores)
    refuse_remote(config)
    defaults = _defaults()
    wanted = {"spark.app.name": name}
    if "MASTER" not in os.environ:
        wanted["spark.master"] = f"local[{cores or '*'}]"
    master = (config or {}).get("spark.master") or os.environ.get("MASTER") or f"local[{cores or '*'}]"
    local = str(master).startswith("local") and "spark.master" not in defaults
    wanted |= settings(cores, partitions, local=local)
    wanted = {key: value for key, value in wanted.items() if key not in defaults}
    wanted |= {key: str(value) for key, value in (config or {}).items()}
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        if SparkContext._gateway is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
            _start_quietly(wanted)
        interruption = signal.getsignal(signal.SIGINT)
        spark = SparkSession.builder.config(map=wanted).getOrCreate()
        if interruption != signal.getsignal(signal.SIGINT) and interruption != signal.default_int_handler:
            signal.signal(signal.SIGINT, interruption)  # Spark has put its own in the place of the user's
        return spark
    except SkybandError:
        raise
    except Exception as problem:
        packages = wanted.get("spark.jars.packages")
        remedy = _PACKAGES.format(packages) if packages else _JAVA
        raise SkybandError(f"Spark did not start: {problem}. {remedy}") from problem


def configure(spark: SparkSession, cores: int | None = None) -> SparkSession:
    """Set on a running session whatever of `settings` can still be set and was not set by anyone.

    On a client of Spark Connect `cores` must be given: how many the server has, it does not tell.
    """
    if cores is None and is_remote_session(spark):
        raise SkybandError(
            "a client of Spark Connect cannot see how many cores its server has, which the number of partitions follows; "
            "say it: sks.configure(spark, cores=8), or set spark.sql.shuffle.partitions and the rest of sks.settings() yourself"
        )
    present = spark.conf.getAll  # what stands in the session itself, not Spark's defaults
    local = not is_remote_session(spark) and spark.sparkContext.master.startswith("local")
    for key, value in settings(cores or spark.sparkContext.defaultParallelism, local=local).items():
        if key not in present and spark.conf.isModifiable(key):
            spark.conf.set(key, value)
    return spark


def is_remote_session(spark: Any) -> bool:
    """Whether a session is a client of Spark Connect: without a JVM of its own."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def refuse_remote(config: Mapping[str, Any] | None = None) -> None:
    """SkybandError where Spark Connect is asked for in the environment or in `config`: no session is started here then."""
    asked = {"SPARK_REMOTE": os.environ.get("SPARK_REMOTE"), "spark.remote": (config or {}).get("spark.remote")}
    for name, url in asked.items():
        if url:
            raise SkybandError(
                f"{name} asks for the Spark Connect server {url}, but sks.session() and `skyband run` start Spark themselves, "
                f"to watch it; take {name} out, or connect with SparkSession.builder.remote({str(url)!r}).getOrCreate() and "
                "use sks.monitor, which needs nothing but a DataFrame"
            )


def _defaults() -> set[str]:
    """What the user's spark-defaults.conf sets."""
    file = _configuration() / "spark-defaults.conf"
    lines = file.read_text().splitlines() if file.is_file() else []
    return {line.replace("=", " ").split()[0] for line in lines if line.strip() and not line.lstrip().startswith("#")}


def _configuration() -> Path:
    return Path(os.environ.get("SPARK_CONF_DIR") or Path(_find_spark_home()) / "conf")


# -- a JVM that keeps to itself ----------------------------------------------------------------------------------

_PACKAGES = (
    'The lines above say whether it could not fetch spark.jars.packages = "{}": name another version or repository '
    "(spark.jars.repositories, spark.jars.ivySettings), or fetch the jars yourself and name their paths in spark.jars"
)
_JAVA = "Spark needs Java 17 or newer: install one (on Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"

# Stopping a query while a function of foreachBatch runs, Spark looks for an interruption in the whole Python error by a
# pattern that recurses at every character: a default stack overflows. Memory is taken only where a stack is that deep.
_DEEP = "-Xss32m"

# Micro-batches leave garbage and little else. By default the JVM takes more heap rather than a tenth of its time for garbage:
# half as much memory again, for no more rows a second.
_LEAN = "-XX:GCTimeRatio=4"


def _start_quietly(wanted: Mapping[str, str]) -> None:
    """Start the JVM with our log4j configuration, deep stacks and little heap, where the user says nothing of them, and without
    the JVM's own remarks."""
    home = os.environ.get("JAVA_HOME")
    if not (Path(home) / "bin" / "java").exists() if home else shutil.which("java") is None:
        raise SkybandError(f"there is no Java {f'in JAVA_HOME={home}' if home else 'on PATH'}. {_JAVA}")
    options = os.environ.get("SPARK_SUBMIT_OPTS")
    # spark.driver.extraJavaOptions come after these, so that what the user set there wins
    added = [options] if options else []
    if "log4j" not in (options or "") and not list(_configuration().glob("log4j2.*")):
        added.append(f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}")
    added += [option for word, option in (("-Xss", _DEEP), ("GCTimeRatio", _LEAN)) if word not in (options or "")]
    os.environ["SPARK_SUBMIT_OPTS"] = " ".join(added)
    reading, writing = os.pipe()
    threading.Thread(target=_pass_on, args=(reading,), name="skyband: errors of the JVM", daemon=True).start()
    try:
        gateway = launch_gateway(SparkConf(loadDefaults=False).setAll(list(wanted.items())), {"stderr": writing})
        SparkContext._ensure_initialized(gateway=gateway)
    finally:
        os.close(writing)
        os.environ.pop("SPARK_SUBMIT_OPTS", None)
        if options is not None:
            os.environ["SPARK_SUBMIT_OPTS"] = options


def _pass_on(reading: int) -> None:
    """Standard error of the JVM and its workers, line by line, as it comes."""
    with os.fdopen(reading, "rb") as lines:
        noisy = False
        for line in lines:
            noisy = any(words in line for words in _NOISE) or (noisy and not line.strip())  # an empty line belongs to it
            if not noisy:
                sys.stderr.buffer.write(line) if hasattr(sys.stderr, "buffer") else sys.stderr.write(
                    line.decode(errors="replace")
                )
                sys.stderr.flush()
