"""What surrounds a job, looked at before Spark starts: its source is there, its sink can be written, its servers answer."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from jobs import job_file

from skyband.spark.jobs.checks import check_surroundings
from skyband.spark.jobs.columns import check_columns
from skyband.spark.jobs.file import JobError
from skyband.spark.jobs.job import Job, read_job


def test_a_source_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    job = read_job(job_file(tmp_path, ('path = "in"', 'path = "im"')))
    with pytest.raises(JobError, match=r"line 5: there is nothing at .*/im; make it"):
        check_surroundings(job)
    (tmp_path / "in" / "a.parquet").touch()
    for pattern in ("in/*.parquet", "{in,im}", "i{m,{l,n}}/a.parquet", "in/[^b].parquet", "i?/{b,*}"):
        check_surroundings(read_job(job_file(tmp_path, ('path = "in"', f'path = "{pattern}"'))))
    for pattern in ("{im,om}", "in/{b,c}.parquet", "in/[^a].parquet"):
        with pytest.raises(JobError, match=r"line 5: there is nothing at"):
            check_surroundings(read_job(job_file(tmp_path, ('path = "in"', f'path = "{pattern}"'))))


def test_a_sink_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    job = read_job(job_file(tmp_path, ('format = "memory"', 'format = "json"\npath = "file/out"')))
    with pytest.raises(JobError, match=r"line 32: results cannot be written to .*file is a file"):
        check_surroundings(job)


def test_a_path_that_no_file_system_takes_is_an_error(tmp_path: Path) -> None:
    long = "x" * 5000
    job = read_job(job_file(tmp_path, ('format = "memory"', f'format = "json"\npath = "{long}"')))
    with pytest.raises(JobError, match=r"line 32: results cannot be written to .*name too long"):
        check_surroundings(job)
    job = read_job(job_file(tmp_path, ('path = "in"', f'path = "{long}"')))
    with pytest.raises(JobError, match=r"line 5: there is nothing at"):
        check_surroundings(job)


@pytest.mark.parametrize(
    ("changes", "line", "message"),
    [
        ([('format = "memory"', 'format = "json"\npath = "in"')], 32, r"written to .*/in, and \[source\] reads .*/in; choose"),
        ([('checkpoint = "state"', 'checkpoint = "./x/../in"')], 1, r"the checkpoint would be written to .*, and \[source\]"),
        (
            [
                ("maxFilesPerTrigger = 1", "recursiveFileLookup = true"),
                ('format = "memory"', 'format = "json"\npath = "in/out"'),
            ],
            32,
            r"and \[source\] reads",
        ),
        ([('format = "memory"', 'format = "json"\npath = "state"')], 1, "give the checkpoint its own folder"),
        # a pattern means folders that are not there yet, too
        ([('path = "in"', 'path = "*"'), ('format = "memory"', 'format = "json"\npath = "out"')], 32, r"reads .*/\*; choose"),
        ([('path = "in"', 'path = "{in,*t*}"')], 1, r"the checkpoint would be written to .*, and \[source\]"),
        ([('path = "in"', 'path = "*/*"'), ('format = "memory"', 'format = "json"\npath = "out"')], 32, r"reads .*/\*; choose"),
        ([('path = "in"', 'path = "*/*.json"')], 1, "the checkpoint would be"),
    ],
)
def test_a_job_that_would_read_what_it_writes_is_an_error(
    tmp_path: Path, changes: list[tuple[str, str]], line: int, message: str
) -> None:
    job = read_job(job_file(tmp_path, *changes))
    (tmp_path / "in" / "a.json").touch()
    with pytest.raises(JobError, match=rf"line {line}: .*{message}"):
        check_surroundings(job)


@pytest.mark.parametrize(
    ("change", "line", "message"),
    [
        (('time = "ts"', 'time = "TS"'), 10, "time names 'TS', which the input does not have; did you mean 'ts'"),
        (('["venue"]', '["venue", "venu"]'), 12, "group_by names 'venu'.*did you mean 'venue'"),
        (('arrival = "id"', 'arrival = "di"'), 13, "arrival names 'di'"),
        (('arrival = "id"', 'key = "ident"\ndeletes = "venue"'), 13, "key names 'ident'"),
        (('"price * 2"', '"prise * 2"'), 25, "the score 'prise .* did you mean 'price'"),
        (('"price > 0.2"', '"prise > 0.2"'), 27, "the condition 'prise .* did you mean 'price'"),
        (
            ('"price * 2"\norder = "asc"\nwhere = "price > 0.2"', '"abs(a.prise - b.price)"\nkind = "pairs"'),
            25,
            "the score 'abs.* did you mean 'price'",
        ),
        (("price double", "`the ``price``` double"), 18, "it has 'ts', 'id', 'venue', 'the `price`'"),
        (('time = "ts"', 'time = "price"'), 10, "the time column 'price' is double; it must be an integer or a timestamp"),
        (('lateness = "2 seconds"', "lateness = 2"), 11, "lateness is the integer 2, .* give a duration with a unit"),
        (
            ('lateness = "2 seconds"', 'lateness = "5 us"'),
            11,
            "lateness is '5 us', and Spark counts watermarks in milliseconds",
        ),
        (('arrival = "id"', 'arrival = "venue"'), 13, "the arrival column 'venue' is string"),
        (('arrival = "id"', 'key = "id"\ndeletes = "venue"'), 14, "deletes names 'venue', which is string; it must be boolean"),
        (('score = "price"', 'score = "venue"'), 18, "as a number, but it is of type string"),
        (('{ size = "4 seconds", slide = "1 second" }', "{ size = 4, slide = 1 }"), 28, "window size of query 'least' .* unit"),
        (
            ('arrival = "id"', 'arrival = "venue.id"'),
            13,
            "arrival names 'venue.id', which the input does not have; did you mean 'venue'",
        ),
        (("venue string", "venue array<string>"), 12, "group_by names 'venue', which is a list<.*; group by one of its fields"),
        (("id bigint", "id decimal (38 , 2)"), 13, r"the arrival column 'id' is decimal128\(38, 2\)"),
    ],
)
def test_a_column_that_the_schema_lacks_is_an_error(tmp_path: Path, change: tuple[str, str], line: int, message: str) -> None:
    with pytest.raises(JobError, match=f"line {line}: .*{message}"):
        check_columns(read_job(job_file(tmp_path, change)))


def test_a_field_of_a_struct_is_to_be_a_column_of_its_own(tmp_path: Path) -> None:
    nested = ("price double", "price double, m struct<price: double, id: int>")
    for slip, line in (('score = "price"', 18), ('arrival = "id"', 13)):
        key, _, name = slip.partition(" = ")
        field = name.strip('"')
        job = read_job(job_file(tmp_path, nested, (slip, f'{key} = "m.{field}"')))
        with pytest.raises(
            JobError, match=rf"line {line}: .*'m.{field}'.*; take '{field}' out of 'm' into a column of its own; it"
        ):
            check_columns(job)


def test_columns_that_only_spark_knows_are_left_to_it(tmp_path: Path) -> None:
    """Folders may make columns by their names, what is selected may have any, and types may be more than plain ones."""
    many = "id bigint NOT NULL, venue VARCHAR(9) COMMENT 'a, b', day date, sums array<int>, fee Dec(9,2), at time(6)"
    check_columns(read_job(job_file(tmp_path, ("id bigint, venue string", many))))
    check_columns(read_job(job_file(tmp_path, ("id bigint, venue string", many), ('["venue"]', '["at", "fee", "day"]'))))
    slip = ('time = "ts"', 'time = "day"')
    with pytest.raises(JobError, match="line 10: time names 'day'"):
        check_columns(read_job(job_file(tmp_path, slip)))
    check_columns(read_job(job_file(tmp_path, slip, ('path = "in"', 'path = "in"\nselect = ["ts as day", "*"]'))))
    (tmp_path / "in" / "day=1").mkdir()
    check_columns(read_job(job_file(tmp_path, slip)))
    check_columns(read_job(job_file(tmp_path, slip, ('path = "in"', 'path = "in/*"'))))
    servers = 'options = { "kafka.bootstrap.servers" = "nowhere:1", subscribe = "in" }'
    kafka = (('"parquet"\npath = "in"', '"kafka"'), ("options = { maxFilesPerTrigger = 1 }", servers))
    check_columns(read_job(job_file(tmp_path, *kafka, ('arrival = "id"', 'arrival = "offset"'))))
    with pytest.raises(JobError, match=r"line 12: arrival names 'ofset'.* did you mean 'offset'"):
        check_columns(read_job(job_file(tmp_path, *kafka, ('arrival = "id"', 'arrival = "ofset"'))))


def test_results_of_another_checkpoint_are_not_gone_on_with(tmp_path: Path) -> None:
    """Spark goes by the numbers of micro-batches alone, and would leave out those that another checkpoint's run has written."""
    job = read_job(job_file(tmp_path, ('format = "memory"', 'format = "json"\npath = "out"')))
    for log in ("out/_spark_metadata", "state/offsets"):
        (tmp_path / log).mkdir(parents=True)
    check_surroundings(job)
    (tmp_path / "out" / "_spark_metadata" / "9.compact").touch()
    (tmp_path / "state" / "offsets" / "8").touch()
    with pytest.raises(JobError, match=r"line 32: .*/out holds the results of another checkpoint, up to its micro-batch 9"):
        check_surroundings(job)
    (tmp_path / "state" / "offsets" / "9").touch()  # written, and then stopped before Spark has noted so in the checkpoint
    check_surroundings(job)


def test_a_file_may_begin_with_a_mark(tmp_path: Path) -> None:
    file = job_file(tmp_path)
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert read_job(file).stream.time == "ts"


def test_a_kafka_server_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    def asking(port: int | str) -> Job:
        options = f'options = {{ "kafka.bootstrap.servers" = "127.0.0.1:{port}", topic = "tops" }}'
        return read_job(job_file(tmp_path, ('format = "memory"', f'format = "kafka"\n{options}')))

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        check_surroundings(asking(port))
    with pytest.raises(JobError, match=rf"line 32: no Kafka server can be reached \(127.0.0.1:{port}"):
        check_surroundings(asking(port))
    with pytest.raises(JobError, match=r"\(127.0.0.1:x is no host:port\)"):
        check_surroundings(asking("x"))
