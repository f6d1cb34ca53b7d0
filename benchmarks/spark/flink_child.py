"""Flink SQL's Window Top-N over CSV files, run by a Python that has PyFlink and need not have anything else.

Flink reads the files of a folder in any order, and what comes late it drops: so each file is a table of its own, in order,
as many as there are cores, and their union is what is asked.

`python -m benchmarks.spark.flink_child JOB`; the last line it prints is its figures as JSON.
"""

import json
import sys
import time

COLUMNS = "`ts` TIMESTAMP(3), `id` BIGINT, `part` INT, `a` DOUBLE, `b` DOUBLE, `c` DOUBLE, `d` DOUBLE"


def source(number, file):
    """One file's rows, which are in order, as a table with event time."""
    return (
        f"CREATE TABLE events{number} ({COLUMNS}, WATERMARK FOR ts AS ts) "
        f"WITH ('connector' = 'filesystem', 'path' = 'file://{file}', 'format' = 'csv')"
    )


def top(tables, size, slide, k, weights):
    """The k best of every window, as Flink's documentation writes it, over all tables."""
    score = " + ".join(f"{weight!r} * {name}" for name, weight in weights.items())
    scored = " UNION ALL ".join(f"SELECT *, {score} AS score FROM events{number}" for number in range(tables))
    windows = f"HOP(TABLE scored, DESCRIPTOR(ts), INTERVAL '{slide}' SECOND, INTERVAL '{size}' SECOND(4))"
    ranked = (
        "SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY score DESC) AS place "
        f"FROM TABLE({windows})"
    )
    return (
        f"CREATE TEMPORARY VIEW scored AS {scored}",
        f"SELECT window_end, place, score, id FROM ({ranked}) WHERE place <= {k}",
    )


def main(job):
    """Run to the end of the files."""
    from pyflink.table import EnvironmentSettings, TableEnvironment

    table = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    table.get_config().set("parallelism.default", str(job["cores"]))
    table.get_config().set("taskmanager.memory.managed.size", "512m")
    table.get_config().set("table.local-time-zone", "UTC")
    for number, file in enumerate(job["files"]):
        table.execute_sql(source(number, file))
    view, query = top(len(job["files"]), job["size"], job["slide"], job["k"], job["weights"])
    table.execute_sql(view)
    if job["show"]:
        with table.execute_sql(query).collect() as rows:
            return {"rows": [[str(end), place, id] for end, place, _, id in rows]}
    columns = "window_end TIMESTAMP(3), place BIGINT, score DOUBLE, id BIGINT"
    table.execute_sql(f"CREATE TABLE tops ({columns}) WITH ('connector' = 'blackhole')")
    begin = time.perf_counter()
    table.execute_sql(f"INSERT INTO tops {query}").wait()
    return {"seconds": time.perf_counter() - begin}


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))), flush=True)
