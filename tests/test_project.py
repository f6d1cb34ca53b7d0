"""The project itself: who may import whom, that the README is true, that the command line and ./run answer."""

from __future__ import annotations

import ast
import doctest
import importlib
import json
import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

import skyband as sb
from skyband import cli
from skyband.console import demo

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "skyband"
MODULES = sorted(PACKAGE.rglob("*.py"))
FOLDERS = sorted({path.parent for path in MODULES} - {PACKAGE, PACKAGE / "algorithms"})

COMMAND_LINE = ("skyband.cli", "skyband.console", "skyband.__main__")
ALGORITHMS_MAY_IMPORT = (
    *("kernels", "algorithms", "query", "window", "changes", "errors", "layout", "state", "threads"),
    *("scores.formulas", "scores.expression", "scores.evaluation"),  # what a score is
)
FAMILIES = ("ranked", "spatial", "pairs", "across")
HEAVY = ("numba", "pyspark", "pandas", "polars", "rich", "typer", "matplotlib", "scipy")


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


@cache
def imports_of(path: Path) -> list[str]:
    """Full dotted names of everything a module imports, anywhere in it; `from a import b` gives both a and a.b."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; write the full name"
            names += [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names


def within(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


def offences(path: Path, allowed: tuple[str, ...]) -> list[str]:
    """skyband modules that `path` imports outside the `allowed` parts of the package."""
    roots = tuple(f"skyband.{part}" for part in allowed)
    return [name for name in imports_of(path) if within(name, "skyband") and name != "skyband" and not within(name, *roots)]


# -- the import rule -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_only_kernels_import_numba_and_only_spark_imports_pyspark(path: Path) -> None:
    homes = {"numba": "skyband.kernels", "llvmlite": "skyband.kernels", "pyspark": "skyband.spark"}
    for name in imports_of(path):
        for library, home in homes.items():
            assert not within(name, library) or within(name_of(path), home), f"{name_of(path)} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_only_the_command_line_imports_rich_and_typer(path: Path) -> None:
    if not within(name_of(path), *COMMAND_LINE):
        assert not [name for name in imports_of(path) if within(name, "rich") or within(name, "typer")]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_nothing_below_imports_what_stands_on_top(path: Path) -> None:
    on_top = (*COMMAND_LINE, "skyband.spark")
    if not within(name_of(path), *on_top):
        assert not [name for name in imports_of(path) if within(name, *on_top)]


@pytest.mark.parametrize("path", sorted((PACKAGE / "kernels").rglob("*.py")), ids=name_of)
def test_kernels_import_nothing_above_them(path: Path) -> None:
    assert not offences(path, ("kernels",))
    assert not [name for name in imports_of(path) if within(name, "pyarrow")]


@pytest.mark.parametrize("path", sorted((PACKAGE / "algorithms").rglob("*.py")), ids=name_of)
def test_algorithms_import_only_what_the_design_allows(path: Path) -> None:
    assert not offences(path, ALGORITHMS_MAY_IMPORT)


@pytest.mark.parametrize("path", [path for path in MODULES if not within(name_of(path), "skyband.algorithms")], ids=name_of)
def test_algorithms_are_known_only_through_the_table_and_the_contract(path: Path) -> None:
    modules = {name_of(path) for path in (PACKAGE / "algorithms").rglob("*.py")}
    contracts = {name for name in modules if name.endswith(".contract")}
    of_many = {f"skyband.algorithms.spatial.{name}" for name in ("asked", "crowd", "crowd_time", "thresholds")}
    imported = {name for name in imports_of(path) if name in modules and name.rpartition(".")[2] not in FAMILIES}
    assert not imported - {"skyband.algorithms", "skyband.algorithms.choose"} - contracts - of_many


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_every_package_says_what_its_files_are(folder: Path) -> None:
    told = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    files = {path.name for path in folder.glob("*.py")} - {"__init__.py"}
    assert set(re.findall(r"\b\w+\.py\b", told)) == files
    assert {path.parent.name for path in folder.glob("*/__init__.py")} <= set(re.findall(r"(\w+)/", told))


def test_contributing_says_what_every_file_of_the_package_is() -> None:
    told = (ROOT / "CONTRIBUTING.md").read_text().partition("src/skyband/\n")[2].partition("```")[0]
    own = {path.name for path in PACKAGE.glob("*.py")} - {"__init__.py", "__main__.py"}
    assert own <= set(re.findall(r"\b\w+\.py\b", told))
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} <= set(re.findall(r"(\w+)/", told))


def test_the_rule_sees_an_import_inside_a_function(tmp_path: Path) -> None:
    module = tmp_path / "kernel.py"
    module.write_text("def f():\n    from skyband import monitor\n    import skyband.kernels.order\n")
    assert offences(module, ("kernels",)) == ["skyband.monitor"]


def test_import_skyband_loads_nothing_heavy() -> None:
    code = "import sys, skyband; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = set(python("-c", code).stdout.split())
    assert "skyband" in loaded and "numpy" in loaded
    assert not loaded & set(HEAVY)


# -- the README ------------------------------------------------------------------------------------------------


def test_the_readmes_first_python_block_runs_when_pasted(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert blocks, "README.md has no ```python block"
    python("-c", blocks[0], cwd=tmp_path)


def test_the_readmes_examples_are_true(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = doctest.testfile(str(ROOT / "README.md"), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


@pytest.mark.parametrize("path", [path for path in MODULES if ">>> " in path.read_text()], ids=name_of)
def test_the_examples_in_docstrings_are_true(path: Path) -> None:
    result = doctest.testmod(importlib.import_module(name_of(path)), optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0 and result.failed == 0


# -- the command line ------------------------------------------------------------------------------------------


def python(*args: str, code: int = 0, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter that finds skyband; it must leave with `code`."""
    paths = [str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
    result = subprocess.run(
        [sys.executable, *args], cwd=cwd, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert result.returncode == code, f"exit {result.returncode}\n{result.stdout}\n{result.stderr}"
    return result


def skyband(*args: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    return python("-m", "skyband", *args, code=code)


IN_TURN = """
import contextlib, io, json, sys
from skyband import cli
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["skyband", *arguments]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            cli.main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""


def in_turn(*commands: tuple[str, ...]) -> list[tuple[int, str, str]]:
    """What commands say in one interpreter, started once: their code, what went to stdout and to stderr."""
    said = python("-c", IN_TURN, json.dumps(commands)).stdout.splitlines()
    return [tuple(json.loads(line)) for line in said]


def test_demo_shows_tables_and_says_it_was_checked() -> None:
    result = skyband("demo", "--embedded", "--rows", "60000")
    assert "checked against sorting: equal" in result.stdout
    assert len(re.findall(r"\bequal *$", result.stdout, re.MULTILINE)) == 4 and "differ" not in result.stdout.lower()
    assert "100%" in result.stdout and "biggest trades of the last 30 minutes" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_demo_json_is_one_object_a_line() -> None:
    records = [json.loads(line) for line in skyband("demo", "--embedded", "--rows", "60000", "--json").stdout.splitlines()]
    changes = [record for record in records if record["event"] != "checked"]
    checked = [record for record in records if record["event"] == "checked"]
    assert {record["event"] for record in changes} == {"enter", "leave"}
    assert {record["query"] for record in changes} == {"hot", "tight", "east"} == {record["query"] for record in checked}
    assert all(record["venue"] == 3 for record in changes if record["query"] == "east")
    assert all(record["equal"] for record in checked)
    by_name = {record["query"]: record for record in checked}
    assert by_name["hot"]["late"] > 0 and by_name["hot"]["nulls"] > 0
    assert folded(changes, "hot") == 10


def folded(changes: list[dict[str, object]], query: str) -> int:
    """How many rows are in the top after all changes; every leave must be of a row that is in."""
    present: set[object] = set()
    for change in changes:
        if change["query"] == query:
            (present.add if change["event"] == "enter" else present.remove)(change["seq"])
    return len(present)


def test_demos_check_notices_a_wrong_answer() -> None:
    stream = demo.trades(60_000)
    monitor = sb.Monitor([question.query for question in demo.QUESTIONS], time="ts", lateness="5 seconds")
    monitor.push(stream)
    for question in demo.QUESTIONS:
        assert demo.check(question, stream, monitor).equal
        best = int(monitor.top(question.query.name)["seq"][0].as_py())
        without = stream.set_column(3, "price", [[None if i == best else p for i, p in enumerate(stream["price"].to_pylist())]])
        assert not demo.check(question, without, monitor).equal


def test_a_demo_whose_check_fails_leaves_with_code_1() -> None:
    wrong = "demo.last_window = lambda *_, real=demo.last_window: (lambda end, *rest: (end, rest[0][1:], *rest[1:]))(*real(*_))"
    argv = "['skyband', 'demo', '--embedded', '--rows', '20000']"
    code = f"import sys; from skyband import cli; from skyband.console import demo; {wrong}; sys.argv = {argv}; cli.main()"
    result = python("-c", code, code=1)
    assert "rows differ" in result.stdout and "Traceback" not in result.stderr


def test_algorithms_lists_the_registry() -> None:
    names = sb.algorithms()["name"].to_pylist()
    (_, lines, _), (_, table, _) = in_turn(("algorithms", "--json"), ("algorithms",))
    records = [json.loads(line) for line in lines.splitlines()]
    assert [record["name"] for record in records] == names
    assert set(records[0]) == {"name", "paper", "family", "exact", "windows", "deletions", "needs"}
    assert all(re.search(rf"^\s*{re.escape(name)}\s", table, re.MULTILINE) for name in names)
    assert "…" not in table and "definition" in table


def test_tables_are_cut_to_what_is_told_alone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """In a file or a pipe there is room for a line an algorithm."""
    widths = []
    for told in ("80", None):
        monkeypatch.setenv("COLUMNS", told) if told else monkeypatch.delenv("COLUMNS")
        cli.algorithms()
        widths.append(max(map(len, capsys.readouterr().out.splitlines())))
    assert widths[0] <= 80 < widths[1]


MISTAKES = [
    ("demo", "--rows", "0"),
    ("demo", "--rows", "many"),
    ("algorithms", "--what"),
    ("run",),
    ("run", "no.toml"),
]


def test_mistakes_cost_a_message_and_exit_code_2() -> None:
    for args, (code, out, err) in zip(MISTAKES, in_turn(*MISTAKES), strict=True):
        assert (code, out) == (2, "") and err and "Traceback" not in err, args
    result = skyband("nonsense", code=2)
    assert result.stdout == "" and result.stderr and "Traceback" not in result.stderr


def test_bench_outside_a_checkout_says_so(tmp_path: Path) -> None:
    place = str(tmp_path / "lib" / "skyband" / "cli.py")
    code = f"import sys; from skyband import cli; cli.__file__ = {place!r}; sys.argv = ['skyband', 'bench']; cli.main()"
    result = python("-c", code, code=2)
    assert "checkout" in result.stderr and "Traceback" not in result.stderr


def test_help_and_version() -> None:
    (_, text, _), (_, demos, _), (_, version, _) = in_turn(("--help",), ("demo", "--help"), ("--version",))
    assert all(command in text for command in ("demo", "run", "algorithms", "bench"))
    assert all(told in demos for told in ("100,000", "1,000,000", "20 in a terminal"))  # nothing of it is taken for markup
    assert re.fullmatch(r"skyband \d+\.\d+\.\d+\n", version)


# -- ./run -----------------------------------------------------------------------------------------------------


def test_run_help_lists_every_command() -> None:
    script = (ROOT / "run").read_text()
    result = subprocess.run([ROOT / "run", "help"], capture_output=True, text=True, check=True)
    listed = set(re.findall(r"^  (\w+) ", result.stdout, re.MULTILINE))
    answered = set(re.findall(r"[a-z]{2,}", " ".join(re.findall(r"^    ([a-z |-]+)\)", script, re.MULTILINE))))
    assert listed == answered == {"setup", "demo", "test", "lint", "slow", "bench", "repro", "kafka", "lock", "help"}


def test_run_refuses_an_unknown_command() -> None:
    result = subprocess.run([ROOT / "run", "nonsense"], capture_output=True, text=True, check=False)
    assert result.returncode == 2 and "nonsense" in result.stderr and "usage" in result.stderr


def test_the_lock_names_exact_versions_and_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.+-]+", line) for line in lines)
    locked = {plain(line.partition("==")[0]) for line in lines}
    wanted = [*project["dependencies"], *project["optional-dependencies"]["plots"], *project["optional-dependencies"]["dev"]]
    assert {plain(re.split(r"[<>=!~ \[]", requirement)[0]) for requirement in wanted} <= locked


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
