"""What can be known before a stream starts: that its source is there, its sink can be reached, its checkpoint fits."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import unquote, urlsplit

from skyband.errors import StateError
from skyband.spark.control.terms import Terms
from skyband.spark.jobs.job import FILES, JARS, Job, Source
from skyband.spark.marks import REMEDY, REMEDY_WITH_COMMANDS, check_written, shards_in, written_marks
from skyband.spark.plan import Plan

MARKS = "skyband.json"
"""In the checkpoint's folder: what the checkpoint was written for."""

_PATIENCE = 5.0  # seconds for a server to answer
_CHOICE = re.compile(r"\{([^{}]*)\}")


def check_surroundings(job: Job) -> None:
    """Paths and servers; JobError names the line of what cannot be reached. Spark need not run."""
    sources = {"source": job.source} | ({} if job.control is None else {"control": job.control})
    for end, given in sources.items():
        path = local(given.path)
        if given.format in FILES and path is not None and not _is_there(path):
            message = (
                f"there is nothing at {path}; make it, or point path at files or a folder (a pattern such as *.json works)"
            )
            raise job.document.problem((end, "path"), message)
    for place, key, what in (
        (local(job.sink.path), ("sink", "path"), "results"),
        (local(job.checkpoint), ("checkpoint",), "the checkpoint"),
    ):
        if place is not None and (obstacle := _obstacle(place)):
            raise job.document.problem(key, f"{what} cannot be written to {place}: {obstacle}; choose another path")
    _check_apart(job, sources)
    session_settings(job)
    ends = [(end, given.format, given.options) for end, given in sources.items()]
    for end, kind, options in [*ends, ("sink", job.sink.format, job.sink.options)]:
        if kind == "kafka":
            _check_server(job, end, options)


def session_settings(job: Job) -> dict[str, str]:
    """What the session is told: Spark knows jars by their names alone, a job also by patterns."""
    settings, found = dict(job.spark), []
    for jar in settings[JARS].split(",") if JARS in settings else ():
        path = local(jar)
        matches = [jar] if path is None else sorted(map(str, matching(path)))
        if not matches:
            raise job.document.problem(("spark", JARS), f"there is no jar at {path}; fetch it, or correct {JARS}")
        found += matches
    return settings | ({JARS: ",".join(found)} if found else {})


def local(path: str | None) -> Path | None:
    """A path on this machine; None for one that only Spark can look at."""
    if path is None:
        return None
    parts = urlsplit(path)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return None if parts.scheme else Path(path)


def _is_there(path: Path) -> bool:
    """Whether there is a file or folder of that name, or one that the pattern fits."""
    try:
        return any(True for _ in matching(path))
    except OSError:  # such as a name that no file system takes
        return False


def matching(path: Path) -> Iterable[Path]:
    """The files and folders that a path means: itself, or what it is a pattern of."""
    if path.exists():
        return [path]
    found = (Path(path.anchor).glob(pattern) for pattern in _patterns(path.relative_to(path.anchor)))
    return dict.fromkeys(one for some in found for one in some)


def _patterns(path: PurePath) -> list[str]:
    """A pattern as Spark reads it in patterns of Python, which has no `{a,b}` and says `[!a]` for `[^a]`."""
    text = str(path)
    choice = _CHOICE.search(text)
    if choice is None:
        return [text.replace("[^", "[!")]
    spelt = (text[: choice.start()] + one + text[choice.end() :] for one in choice[1].split(","))
    return [pattern for one in spelt for pattern in _patterns(PurePath(one))]


def _fits(place: Path, pattern: Path) -> bool:
    """Whether a pattern means a place, which need not be there yet."""
    return any(place.match(one) for one in _patterns(pattern.resolve()))


def _obstacle(folder: Path) -> str | None:
    """Why a folder cannot be written or made; None when it can."""
    there = folder
    try:
        while not there.exists():
            there = there.parent
    except OSError as problem:  # such as a name that no file system takes
        return problem.strerror
    if not there.is_dir():
        return f"{there} is a file"
    return None if os.access(there, os.W_OK | os.X_OK) else f"{there} may not be written"


def _check_apart(job: Job, sources: Mapping[str, Source]) -> None:
    """What the job writes must not be what it reads, or it would answer its own results; nor what another one wrote."""
    sink, checkpoint = local(job.sink.path), local(job.checkpoint)
    for place, key, file, what in (
        (sink, ("sink", "path"), f"part-00000.{job.sink.format}", "results"),
        (checkpoint, ("checkpoint",), MARKS, "the checkpoint"),
    ):
        for end, given in sources.items():
            path, deep = local(given.path), given.options.get("recursiveFileLookup") == "true"
            if place is None or path is None:
                continue
            ours = [place.resolve() / file, place.resolve(), *(place.resolve().parents if deep else ())]
            if path.resolve() in ours or (not path.exists() and any(_fits(one, path) for one in ours)):
                message = f"{what} would be written to {place}, and [{end}] reads {path}; choose a folder beside it"
                raise job.document.problem(key, message)
    if sink is not None and checkpoint is not None and sink.resolve() == checkpoint.resolve():
        raise job.document.problem(("checkpoint",), f"results are written to {sink} too; give the checkpoint its own folder")
    if sink is not None and job.sink.format in FILES:
        written, begun = _last(sink / "_spark_metadata"), -1 if checkpoint is None else _last(checkpoint / "offsets")
        if written > begun:
            raise job.document.problem(
                ("sink", "path"),
                f"{sink} holds the results of another checkpoint, up to its micro-batch {written}, and Spark would leave out "
                "ours of these numbers, as if they were written; choose another path, or remove that folder",
            )


def _last(log: Path) -> int:
    """The last micro-batch of which one of Spark's logs tells; -1: none."""
    return max((int(file.name.partition(".")[0]) for file in log.glob("[0-9]*")), default=-1)


def _check_server(job: Job, end: str, options: Mapping[str, str]) -> None:
    """Of several servers one is enough: it knows the others."""
    reasons = []
    for server in options["kafka.bootstrap.servers"].split(","):
        host, _, port = server.strip().rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _PATIENCE).close()
            return
        except ValueError:
            reasons.append(f"{server.strip()} is no host:port")
        except OSError as problem:
            reasons.append(f"{server.strip()}: {problem}")
    message = f'no Kafka server can be reached ({"; ".join(reasons)}); start one, or correct "kafka.bootstrap.servers"'
    raise job.document.problem((end, "options", "kafka.bootstrap.servers"), message)


# -- the checkpoint ----------------------------------------------------------------------------------------------


def check_checkpoint(checkpoint: str | None, plan: Plan | Terms) -> None:
    """StateError when the checkpoint was written for other queries, or by a skyband whose states have another format; a new
    one is marked as written for these.

    A checkpoint that is not on this machine is left to the state itself, which knows what it was written for
    and refuses as the first micro-batch reads it.
    """
    folder = local(checkpoint)
    if folder is None:
        return
    marks, began = folder / MARKS, any((folder / "offsets").glob("[0-9]*"))
    if (then := _written(checkpoint)) is not None:
        check_written(then, plan.marks, REMEDY_WITH_COMMANDS if isinstance(plan, Terms) else REMEDY)
    elif not began:  # with a first batch and without marks, another program wrote it: the state will tell
        folder.mkdir(parents=True, exist_ok=True)
        marks.write_text(json.dumps(written_marks(plan.marks), indent=2) + "\n")


def kept_shards(checkpoint: str | None) -> int | None:
    """Over how many states the work is spread that a checkpoint on this machine was written for; None where it does not say."""
    then = _written(checkpoint)
    return shards_in(then) if isinstance(then, dict) else None


def _written(checkpoint: str | None) -> Any:
    """What a checkpoint with a first batch says that it was written for; None: nothing."""
    folder = local(checkpoint)
    if folder is None or not (folder / MARKS).is_file() or not any((folder / "offsets").glob("[0-9]*")):
        return None
    try:
        return json.loads((folder / MARKS).read_text())
    except ValueError as problem:
        raise StateError(f"{folder / MARKS} is damaged ({problem}); start with a new checkpoint, or restore the file") from None
