"""The command line: help without imports, errors without stacks, the configuration shown."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import click
import pytest
from click.testing import CliRunner, Result

from kaflow_engine.cli import main
from kaflow_engine.cli.options import configuration
from kaflow_engine.errors import Location, ModelError, Problems, SinkError


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments: str, env: dict[str, str] | None = None) -> Result:
        return CliRunner().invoke(main.kaflow, arguments, env=env, prog_name="kaflow")

    return invoke


def this_module(_: str) -> ModuleType:
    return sys.modules[__name__]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Exception], None]:
    """Make `kaflow version` fail."""

    def install(error: Exception) -> None:
        @click.command()
        def fail() -> None:
            raise error

        monkeypatch.setattr(sys.modules[__name__], "fail", fail, raising=False)
        monkeypatch.setitem(main.COMMANDS, "version", f"{__name__}:fail")
        monkeypatch.setattr(main, "import_module", this_module)

    return install


def test_help_imports_no_command() -> None:
    heavy = ("pyspark", "duckdb", "pyarrow", "confluent_kafka", "rocksdict", "sqlglot")
    code = f"""
import sys
from kaflow_engine.cli.main import kaflow
try:
    kaflow(["--help"])
except SystemExit:
    pass
names = [n for n in sys.modules if n.partition(".")[0] in {heavy!r} or "cli.config" in n]
print(names, file=sys.stderr)
"""
    out = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert out.stderr.strip() == "[]"
    assert all(f"  {name} " in out.stdout for name in main.COMMANDS)


def test_every_command_has_a_summary() -> None:
    assert set(main.COMMANDS) == set(main.SUMMARIES)


@pytest.mark.parametrize("name", main.COMMANDS)
def test_every_command_has_help(run: Callable[..., Result], name: str) -> None:
    result = run(name, "--help")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(f"Usage: kaflow {name} ")


def test_version(run: Callable[..., Result]) -> None:
    assert "duckdb" in run("version").stdout
    found = json.loads(run("version", "--json").stdout)
    assert found["python"].startswith("3.")


def test_config_show(run: Callable[..., Result]) -> None:
    Path("kaflow.yaml").write_text("state:\n  ttl: 2h\n")
    Path("other.yaml").write_text("state: {ttl: 3h}\n")
    result = run("config", "show", env={"KAFLOW__KAFKA__BROKERS": "a:1,b:2"})
    lines = {line.split()[0]: line.split(None, 1)[1] for line in result.stdout.splitlines()}
    assert result.exit_code == 0
    assert lines["kafka.brokers"].split() == [
        *("a:1,", "b:2", "environment", "KAFLOW__KAFKA__BROKERS")
    ]
    assert lines["state.ttl"].split() == ["2h", "kaflow.yaml:2"]
    shown = run("config", "show", "--config", "other.yaml", "--set", "max_records=7", "--json")
    found = json.loads(shown.stdout)
    assert found["state.ttl"] == {"value": "3h", "origin": "other.yaml:1"}
    assert found["max_records"] == {"value": 7, "origin": "command line"}
    assert found["kafka.consumer.group"] == {"value": None, "origin": "default"}


@pytest.mark.parametrize(
    ("settings", "master", "found"),
    [
        ((), None, "local[2]"),
        ((), "spark://host:7077", "spark://host:7077"),
        (("spark.master=yarn",), "local[4]", "local[4]"),
    ],
)
def test_master_is_short_for_a_setting(
    run: Callable[..., Result], settings: tuple[str, ...], master: str | None, found: str
) -> None:
    assert configuration(None, settings, master).spark.master == found


def test_a_wrong_file_ends_with_10(run: Callable[..., Result]) -> None:
    Path("kaflow.yaml").write_text("state:\n  ttl: soon\nlogs: 1\n")
    result = run("config", "show")
    assert (result.exit_code, result.stdout) == (10, "")
    assert result.stderr.splitlines() == [
        "error: kaflow.yaml:2: 'soon' is not a duration",
        "  hint: write it as 500ms, 90s, 30m, 24h, 7d, 2w or 1h30m; at most 36500d",
        "error: kaflow.yaml:3: unknown configuration key 'logs'",
        "  hint: did you mean 'plugins'?",
    ]


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (SinkError("topic is gone", Location("p.yaml", 3), "create it"), 12, "p.yaml:3: topic is"),
        (Problems([ModelError("one"), ModelError("two")]), 10, "error: one\nerror: two\n"),
    ],
)
def test_our_errors(
    run: Callable[..., Result],
    failing: Callable[[Exception], None],
    error: Exception,
    code: int,
    text: str,
) -> None:
    failing(error)
    result = run("version")
    assert result.exit_code == code
    assert text in result.stderr
    assert "Traceback" not in result.stderr


def test_unexpected_errors(
    run: Callable[..., Result], failing: Callable[[Exception], None]
) -> None:
    failing(RuntimeError("two\nlines of http://me:pw@host"))
    result = run("version")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "error: RuntimeError: two lines of http://***@host",
        "  hint: this is a fault of kaflow; run again with --traceback",
    ]
    for arguments in (("--traceback", "version"), ("version", "--traceback")):
        assert isinstance(run(*arguments).exception, RuntimeError)


@pytest.mark.parametrize(
    "arguments",
    [["nope"], ["config", "nope"], ["config", "show", "--nope"], ["config", "show", "--set", "x"]],
)
def test_usage_errors_end_with_2(run: Callable[..., Result], arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Usage: kaflow" in result.stderr
