"""One Spark session for all Spark tests of a run: starting one takes seconds."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from skyband.spark.sessions import settings

SETTINGS = settings(cores=2, local=True) | {
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
}

# Most of what a JVM here does it does a few times, in one of many short streams: compiling that well costs more than it saves.
# The JVMs that tests start take it up too.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session of two cores. What a test sets on it, the test sets back."""
    home = os.environ.get("JAVA_HOME")
    if not shutil.which("java") and not (home and (Path(home) / "bin" / "java").exists()):
        pytest.fail("the Spark tests need Java 17 or newer: install it, or let JAVA_HOME name it", pytrace=False)
    os.environ["PYSPARK_PYTHON"] = sys.executable  # what workers run; the setting alone is read by spark-submit only
    builder = SparkSession.builder.master("local[2]").appName("skyband tests")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse"))).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
