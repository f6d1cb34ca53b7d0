"""A job file that is right, and ways to spoil it."""

from __future__ import annotations

from pathlib import Path

GOOD = """\
checkpoint = "state"

[source]
format = "parquet"
path = "in"
schema = "ts timestamp, id bigint, venue string, price double"
options = { maxFilesPerTrigger = 1 }

[stream]
time = "ts"
lateness = "2 seconds"
group_by = ["venue"]
arrival = "id"

[[query]]
name = "best"
k = 3
score = "price"
window = { size = "10 seconds", slide = "1 second" }
emit = "snapshots"

[[query]]
name = "least"
k = 2
score = "price * 2"
order = "asc"
where = "price > 0.2"
window = { size = "4 seconds", slide = "1 second" }

[sink]
format = "memory"

[trigger]
available_now = true
"""


def job_file(folder: Path, *changes: tuple[str, str]) -> Path:
    """The good job with some lines replaced, in a folder with a source."""
    text = GOOD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    (folder / "in").mkdir(exist_ok=True)
    (folder / "job.toml").write_text(text)
    return folder / "job.toml"
