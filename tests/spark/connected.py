"""A client of Spark Connect in a process of its own: the mode is a matter of the whole process.

Starts a local server, asks the questions of `trading` of a batch and of a stream, tries what a client cannot do, and
prints one JSON object with what came of it.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import trading
from jobs import job_file
from pyspark.sql import DataFrame, SparkSession

import skyband as sb
import skyband.spark as sks
from skyband.errors import SkybandError
from skyband.spark.jobs.job import read_job
from skyband.spark.jobs.running import run_job
from skyband.spark.progress import observed


def main(folder: Path, archive: str) -> None:
    """Everything, into the folder."""
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    said: dict[str, Any] = {"client": type(spark).__module__}
    said["refused"] = [refusal(lambda: sks.session()), refusal(lambda: sks.configure(spark))]
    job = read_job(job_file(folder))
    said["refused"].append(refusal(lambda: run_job(job, None, threading.Event(), spark)))  # type: ignore[arg-type]
    sks.configure(spark, cores=2)
    said["settings"] = [spark.conf.get("spark.sql.shuffle.partitions"), spark.conf.get("spark.sql.session.timeZone")]
    if archive:
        spark.addArtifacts(archive, pyfile=True)

    batch = monitored(spark.read.schema(trading.SCHEMA).parquet(str(folder / "trades")))
    said["batch"] = [trading.answer(row.asDict(), row.row.asDict()) for row in batch.collect()]

    stream = monitored(spark.readStream.schema(trading.SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "trades")))
    writer = stream.writeStream.format("parquet").option("path", str(folder / "out"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    (name,) = {name for progress in query.recentProgress for name in progress.observedMetrics}
    said["rows"] = sum(observed(progress, name).get("rows", 0) for progress in query.recentProgress)
    results = spark.read.parquet(str(folder / "out")).collect()
    said["stream"] = [trading.answer(row.asDict(), row.row.asDict()) for row in results]

    spark.conf.set("spark.sql.caseSensitive", "true")
    twins = spark.createDataFrame([(1, 2.0, 3.0)], "t long, price double, Price double")
    asked = sb.TopK(name="q", k=1, score="exp(price)", window=sb.TimeWindow(10, 10), emit="snapshots")
    (row,) = sks.monitor(twins, asked, time="t").collect()
    said["exp(2)"] = row.score
    said["worker"] = spark.range(1).mapInPandas(where_skyband_is, "file string").first().file
    print(json.dumps(said))


def monitored(rows: DataFrame) -> DataFrame:
    return sks.monitor(rows, trading.QUERIES, time="ts", lateness="5 seconds", group_by=["venue"], arrival="id")


def where_skyband_is(frames: Any) -> Any:
    import pandas as pd

    import skyband

    for _ in frames:
        yield pd.DataFrame({"file": [skyband.__file__]})


def refusal(attempt: Callable[[], Any]) -> str:
    try:
        attempt()
    except SkybandError as problem:
        return str(problem)
    return "was not refused"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
