"""Examples of Streamling with plugins: what becomes of rows, by packages on our own contracts."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import yaml

from kaflow_engine.errors import ModelError
from kaflow_engine.model.configuration.load_config import load_config
from kaflow_engine.plan.planner.project import check_project
from kaflow_engine.plugins.installed import forget_loaded
from kaflow_engine.testing.cases.cases import run_case
from kaflow_engine.testing.cases.executor import LocalExecutor
from kaflow_engine.testing.cases.files import load_cases
from kaflow_engine.testing.cases.pipeline import Surroundings
from kaflow_engine.testing.cases.report import report_lines
from tests.conftest import EXAMPLE_PLUGINS
from tests.engine.plan.test_streamling import FIXTURES
from tests.plugins.basic_plugin import row_of

AT = "2026-01-01T00:00:00Z"
CONFIG = {"postgres": {"connections": {"postgres_sink": {"url": "postgresql://u@localhost/d"}}}}


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let what a test finds go with it."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    forget_loaded()
    yield
    forget_loaded()


@pytest.mark.usefixtures("nothing_installed")
@pytest.mark.parametrize("place", ["", "basic_plugin.py", "wheel", "folder of wheels"])
def test_plugins_are_found_by_their_path(place: str, tmp_path: Path) -> None:
    path = EXAMPLE_PLUGINS / place
    if "wheel" in place:
        path = tmp_path / "streamling_examples-1.0-py3-none-any.whl"
        with ZipFile(path, "w") as wheel:
            for file in EXAMPLE_PLUGINS.rglob("*"):
                wheel.write(file, file.relative_to(EXAMPLE_PLUGINS))
        path = path if place == "wheel" else tmp_path
    config = load_config(None, {"STREAMLING__PLUGIN__PATH": str(path)})
    files = [FIXTURES / "seed" / f"{name}.yaml" for name in ("custom_source", "plugins")]
    assert check_project(files, config, {}).mistakes == ()
    code = "from kaflow_engine.plugins.installed import *; print(*installed(SOURCES))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert "basic_plugin.random_source" in done.stdout  # as workers of Spark find them


@pytest.mark.usefixtures("nothing_installed")
def test_a_path_without_plugins_is_a_mistake(tmp_path: Path) -> None:
    config = load_config(None, {"STREAMLING__PLUGIN__PATH": str(tmp_path / "none")})
    with pytest.raises(ModelError) as raised:
        check_project([FIXTURES / "seed" / "plugins.yaml"], config, {})
    assert str(raised.value).startswith(
        f"environment STREAMLING__PLUGIN__PATH: there are no plugins at '{tmp_path / 'none'}'\n"
        "  hint: name a wheel, or a folder with wheels or with packages"
    )


def run(folder: Path, example: str, given: list[Any], expect: list[Any], topics: Any) -> None:
    case = {
        "case": example,
        "pipeline": str(FIXTURES / "seed" / f"{example}.yaml"),
        "config": CONFIG,
        "topics": topics,
        "cuts": "given",
        "given": given,
        "expect": expect,
    }
    path = folder / "cases.yaml"
    path.write_text(yaml.safe_dump([case]))
    (loaded,) = load_cases(path, {})
    result = run_case(loaded, LocalExecutor(), around=Surroundings(variables={}))
    assert result.passed, "\n".join(report_lines(result))


@pytest.mark.usefixtures("example_plugins")
def test_a_source_of_a_package(tmp_path: Path) -> None:
    rows = [row_of(n) for n in range(20)]
    rows[5]["_gs_op"], rows[6]["_gs_op"] = "u", "d"
    given = [{"topic": "orders", "at": AT, "value": row} for row in rows]
    expect = [
        {"key": row["alphanumeric_field"], "value": {k: row[k] for k in row if k != "_gs_op"}}
        for row in rows
        if int(row["num_field"]) > 100 and row["_gs_op"] != "d"
    ]
    assert 0 < len(expect) < 20
    run(tmp_path, "custom_source", given, expect, {})


@pytest.mark.usefixtures("example_plugins")
def test_a_transform_of_a_package_keeps_inserts_only(tmp_path: Path) -> None:
    given = [
        {"topic": "raw.events", "at": AT, "headers": {"dbz.op": op}, "value": {"id": n, "v": op}}
        for n, op in ((1, "c"), (2, "c"), (1, "u"), (2, "d"), (3, "r"))
    ]
    expect = [
        {"key": str(n), "value": {"id": n, "v": op}} for n, op in ((1, "c"), (2, "c"), (3, "r"))
    ]
    topics = {"raw.events": {"id": "BIGINT", "v": "VARCHAR"}}
    run(tmp_path, "custom_transform", given, expect, topics)


@pytest.mark.usefixtures("example_plugins")
def test_a_sink_of_a_package(tmp_path: Path) -> None:
    given = [
        {"topic": "app.events", "at": AT, "headers": {"dbz.op": op}, "value": {"id": 1, "v": op}}
        for op in ("c", "u", "d")
    ]
    expect = [
        {"topic": "streamling.print_sink:partner_out", "key": "1", "value": value}
        for value in ({"id": 1, "v": "c"}, {"id": 1, "v": "u"}, None)
    ]
    topics = {"app.events": {"id": "BIGINT", "v": "VARCHAR"}}
    run(tmp_path, "custom_sink", given, expect, topics)
