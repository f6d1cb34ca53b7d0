"""A job's rows as a streaming DataFrame. What does not fit the schema is set aside and counted, and the stream goes on.

Spark by itself makes nulls of a text it cannot read, and a row of nulls would be taken for a row. So texts (Kafka's
values, JSON and CSV files) are read with Spark's column for broken records, which tells the two apart; broken
ones are counted in an observed metric, with the place of the latest for Kafka, and left out. `skyband.spark.progress` adds
them up. A source option `mode` or `columnNameOfCorruptRecord` means that the user has settled it otherwise.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from skyband.spark.jobs.job import FROM_KAFKA, Job
from skyband.spark.jobs.refusals import refused_at

BAD = "skyband-source"
"""Name of the metrics: `bad rows`, and `last bad`, the place of the latest."""

_BROKEN = "_skyband_broken"
_BROKEN_OPTION = "columnNameOfCorruptRecord"
_KAFKA = "org.apache.spark.sql.kafka010.KafkaSourceProvider"


def read(spark: SparkSession, job: Job, end: str = "source", counts: str = BAD) -> DataFrame:
    """The source's rows; Kafka's values are JSON where the job gives their schema. What Spark refuses becomes a JobError at a
    line of the table `end`. `counts` names the count of broken rows."""
    source = job.source
    if "kafka" in (source.format, job.sink.format):
        _check_connector(spark, job, end)
    reader = spark.readStream.format(source.format).options(**source.options)
    schema, checked = source.schema, False
    if schema is not None and source.format != "kafka":
        settled = {name.lower() for name in source.options} & {"mode", _BROKEN_OPTION.lower()}
        checked = source.format in ("json", "csv") and not settled
        with refused_at(job, end, "schema"):
            reader = reader.schema(_with_broken(schema) if checked else schema)
        reader = reader.option(_BROKEN_OPTION, _BROKEN) if checked else reader
    with refused_at(job, end, "format"):
        rows = reader.load(source.path) if source.path is not None else reader.load()
    if checked:
        rows = _sound(rows, F.col(_BROKEN).isNotNull(), F.lit(None).cast("string"), counts).drop(_BROKEN)
    elif source.format == "kafka" and schema is not None:
        with refused_at(job, end, "schema"):
            rows = _from_json(rows, schema, counts)
    with refused_at(job, end, "select"):
        return rows.selectExpr(*source.select) if source.select else rows


def _from_json(rows: DataFrame, schema: str, counts: str | Observation = BAD) -> DataFrame:
    """The columns of Kafka's values, and where each came from, where the values have no column of that name."""
    parsed = F.from_json(F.col("value").cast("string"), _with_broken(schema), {_BROKEN_OPTION: _BROKEN})
    rows = rows.withColumn("value", parsed)
    broken = F.col("value").isNull() | F.col(f"value.{_BROKEN}").isNotNull()
    place = F.format_string("%s, partition %d, offset %d", "topic", "partition", "offset")
    taken = [name for name in rows.schema["value"].dataType.fieldNames() if name != _BROKEN]
    columns = [F.col("value").getField(name).alias(name) for name in taken]
    return _sound(rows, broken, place, counts).select(*columns, *(name for name in FROM_KAFKA if name not in taken))


def _with_broken(schema: str) -> str:
    return f"{schema}, {_BROKEN} string"


def _sound(rows: DataFrame, broken: Column, place: Column, counts: str | Observation = BAD) -> DataFrame:
    """Rows that are not broken; the others are counted on the way."""
    moment = F.when(broken, F.col("timestamp")) if "timestamp" in rows.columns else F.lit(None).cast("timestamp")
    counted = F.coalesce(F.count_if(broken), F.lit(0)).alias("bad rows")
    return rows.observe(counts, counted, F.max_by(place, moment).alias("last bad")).where(~broken)


def _check_connector(spark: SparkSession, job: Job, end: str) -> None:
    try:
        spark._jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(_KAFKA)
    except Exception:
        package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version}"
        message = (
            f'Spark has no Kafka connector; add to [spark]: "spark.jars.packages" = "{package}", which Spark then fetches, '
            'or "spark.jars" with the paths of its jars'
        )
        end = end if job.source.format == "kafka" else "sink"
        raise job.document.problem((end, "format"), message) from None
