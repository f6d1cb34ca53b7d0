"""A Spark session that suits this work: one function sets what matters and overrides nothing the user set."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.sql import SparkSession

from skyband.errors import SkybandError
from skyband.spark import jvm

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
DAEMON = "skyband.spark.daemon"
_PYTHON = "PYSPARK_PYTHON"  # what workers run
_NEEDED = ("skyband", "numpy", "numba", "pyarrow", "pandas")  # by them

_PACKAGES = (
    'The lines above say whether it could not fetch spark.jars.packages = "{}": name another version or repository '
    "(spark.jars.repositories, spark.jars.ivySettings), or fetch the jars yourself and name their paths in spark.jars"
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
    defaults = jvm.defaults()
    wanted = {"spark.app.name": name}
    if "MASTER" not in os.environ:
        wanted["spark.master"] = f"local[{cores or '*'}]"
    master = (config or {}).get("spark.master") or os.environ.get("MASTER") or f"local[{cores or '*'}]"
    local = str(master).startswith("local") and "spark.master" not in defaults
    wanted |= settings(cores, partitions, local=local)
    wanted = {key: value for key, value in wanted.items() if key not in defaults}
    wanted |= {key: str(value) for key, value in (config or {}).items()}
    os.environ.setdefault(_PYTHON, {**defaults, **wanted}["spark.pyspark.python"])  # the setting alone is read by spark-submit
    try:
        if SparkContext._gateway is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
            jvm.start(wanted)
        interruption = signal.getsignal(signal.SIGINT)
        spark = SparkSession.builder.config(map=wanted).getOrCreate()
        if interruption != signal.getsignal(signal.SIGINT) and interruption != signal.default_int_handler:
            signal.signal(signal.SIGINT, interruption)  # Spark has put its own in the place of the user's
        return spark
    except SkybandError:
        raise
    except Exception as problem:
        packages, reason, remedy = wanted.get("spark.jars.packages"), str(problem), jvm.NEEDS_JAVA
        if isinstance(problem, Py4JJavaError):  # there is a Java, and it said why
            reason, remedy = str(problem.java_exception.getMessage()), "Correct the settings of the session"
        remedy = _PACKAGES.format(packages) if packages else remedy
        raise SkybandError(f"Spark did not start: {reason.rstrip('.')}. {remedy}") from problem


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
    if local and _PYTHON not in os.environ:
        spark.sparkContext.pythonExec = present.get("spark.pyspark.python", sys.executable)
    return spark


def check_workers(spark: SparkSession) -> None:
    """SkybandError where Spark is one process and its workers would run a Python without skyband."""
    if is_remote_session(spark) or not spark.sparkContext.master.startswith("local"):
        return
    python = spark.sparkContext.pythonExec
    beside = Path(shutil.which(python) or python).parent == Path(sys.executable).parent  # an environment's Python is a link
    if not beside and not spark.sparkContext._python_includes and (missing := _missing(python)):
        raise SkybandError(
            f"Spark's workers would run {python!r}, which has no {missing}; make the session with sks.session(), call "
            f"sks.configure(spark) on yours, or set {_PYTHON}={sys.executable} before it begins"
        )


@cache
def _missing(python: str) -> str:
    """The first package that workers need and a Python lacks, which may find skyband all the same, by PYTHONPATH; or none."""
    look = f"from importlib.util import find_spec; print(*[name for name in {_NEEDED} if find_spec(name) is None])"
    try:
        found = subprocess.run([python, "-c", look], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except OSError:
        return _NEEDED[0]
    return found.stdout.partition(" ")[0].strip() if found.returncode == 0 else _NEEDED[0]


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
