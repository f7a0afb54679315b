"""The laws of sources, over both of this package."""

import json
import sqlite3
from pathlib import Path

import pytest
from plugin_package.feed import Feed
from plugin_package.source import SqliteRows

from kaflow_engine.testing.source_laws import *  # noqa: F403
from kaflow_engine.testing.source_laws import PluginSubject

ROWS = [{"n": 1}, {"n": 2}, {"n": 3}, {"n": 4}]


def rows_of_a_file(folder: Path) -> PluginSubject:
    file = folder / "rows.db"
    with sqlite3.connect(file) as rows:
        rows.execute("CREATE TABLE rows (row TEXT)")
        rows.executemany("INSERT INTO rows VALUES (?)", [(json.dumps(row),) for row in ROWS])
    return PluginSubject(SqliteRows(), {"file": str(file)}, [ROWS], folder)


def lines_of_a_file(folder: Path) -> PluginSubject:
    file = folder / "lines.txt"
    file.write_text("a\nb\nc\n")
    rows = [{"at": 2 * n, "line": line} for n, line in enumerate("abc")]
    return PluginSubject(Feed(), {"file": str(file)}, [rows], folder)


@pytest.fixture(params=[rows_of_a_file, lines_of_a_file])
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> PluginSubject:
    return request.param(tmp_path)
