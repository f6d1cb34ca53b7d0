"""What Spark refuses, or fails with, in one line; at the line of the job file, where one is to blame."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from skyband.spark.jobs.job import Job

_RAISED = re.compile(r"(skyband\.errors|pyarrow\.lib)\.|\w+(Error|Exception)(: |$)|.*Error$")
"""Lines of a Python worker's trace that name what was raised; those of Java's say its package before."""


@contextmanager
def refused_at(job: Job, *key: str) -> Iterator[None]:
    """What Spark refuses within becomes an error that names the line of a key."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as problem:
        raise job.document.problem(key, in_short(problem)) from problem


def in_short(problem: BaseException) -> str:
    """What a user needs of Spark's message: what a Python worker raised, or its first line; without the traces."""
    java: Any = getattr(problem, "java_exception", None) or getattr(problem, "_origin", None)
    text = str(java.getMessage()) if isinstance(problem, Py4JJavaError) else str(problem)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if java is not None and lines and lines[0].endswith(":"):  # what it begins to say, its cause says
        while java.getCause() is not None:
            java = java.getCause()
        lines = [java.getMessage() or lines[0]]
    raised = [line for line in lines if _RAISED.match(line)]
    if raised and not raised[-1].startswith(("skyband.errors.", "pyarrow.lib.")):
        return raised[-1]  # one of Python's own says little without its name, such as "KeyError: 'x'"
    return raised[-1].partition(": ")[2] or raised[-1] if raised else lines[0] if lines else type(problem).__name__
