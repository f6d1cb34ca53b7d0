"""A running stream's figures, for other programs: `skyband.spark.metrics`.

    latency.py      how long results took: quantiles over the last micro-batches
    exposition.py   figures as Prometheus reads them
    endpoint.py     a port of this machine where that text can be fetched
    metrics.py      the listener that keeps the figures of every stream, and hands them to the port and to a file

The figures themselves come from `skyband.spark.progress`, which reads what `skyband.spark.tallies` sends.
"""
