"""The laws of sinks, over this one."""

import sqlite3
from collections.abc import Set
from pathlib import Path

import pyarrow as pa
import pytest
from plugin_package.sink import SqliteFiles

from kaflow_engine.api.sinks import Column, Holding, Output, Owner
from kaflow_engine.testing.sink_laws import *  # noqa: F403
from kaflow_engine.testing.sink_laws import OURS, Run, rows_of


class SqliteSubject:
    """A file under test."""

    last_point = "before_commit"

    def __init__(self, file: Path) -> None:
        self._file = file
        self._output = Output(
            name="@NAME@:rows",
            place="@NAME@:rows",
            columns=(Column("n", "BIGINT"),),
            settings={"file": str(file)},
        )

    def begin(self, owner: Owner = OURS) -> Run:
        outlet = SqliteFiles().outlet
        opened = outlet.open(self._output, self.rows([]).schema, owner, None)
        return Run(outlet.task(self._output, owner), opened)

    def rows(self, values: list[int]) -> pa.Table:
        return rows_of(values)

    def visible(self) -> list[int]:
        with sqlite3.connect(self._file) as file:
            asked = "SELECT json_extract(row, '$.n') FROM rows"
            return [n for (n,) in file.execute(asked)]

    def holdings(self) -> Set[Holding]:
        return {*SqliteFiles().outlet.look(self._output, self.rows([]).schema, OURS)}


@pytest.fixture
def subject(tmp_path: Path) -> SqliteSubject:
    return SqliteSubject(tmp_path / "rows.db")
