"""Offsets of data sources of PySpark: which ones are kept, and which are given back."""

from pathlib import Path
from typing import Any

import pytest

from kaflow_engine.connectors.journal.journal import Journal
from kaflow_engine.connectors.journal.sessions import Line
from kaflow_engine.connectors.pyspark.receiving import take_rows
from tests.engine.connectors.data_sources_here import SparseReader
from tests.engine.connectors.pyspark_here import NOW, NUMBERS, line_of, params, rows, run


@pytest.fixture
def sparse(monkeypatch: pytest.MonkeyPatch) -> type[SparseReader]:
    monkeypatch.setattr(SparseReader, "committed", [])
    return SparseReader


def test_what_gave_no_row_is_asked_for_again(tmp_path: Path, sparse: type[SparseReader]) -> None:
    assert run(tmp_path, params("sparse"), 2) == [1, 1]
    assert [row["n"] for row in rows(tmp_path)] == [2, 5]
    assert sparse.committed == [{"n": 3}]  # what lies before the last row waits for a later piece


def test_it_begins_where_it_began_until_a_row_is_there(
    tmp_path: Path, sparse: type[SparseReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(sparse, "read", lambda self, partition: iter(()))
        patched.setattr(sparse, "latestOffset", lambda self, start, limit: stop_at(line, start))
        journal = Journal(tmp_path, NOW)
        line = line_of(journal, params("sparse"))
        take_rows(line)
        journal.close()
    monkeypatch.setattr(sparse, "now", 4)
    run(tmp_path, params("sparse"))
    assert [row["n"] for row in rows(tmp_path)] == [2]
    run(tmp_path, params("sparse"))
    assert [row["n"] for row in rows(tmp_path)] == [2, 5]
    run(tmp_path, params("every_type", bounded=True))
    run(tmp_path, params("sparse"))
    assert [row["n"] for row in rows(tmp_path)[-1:]] == [5]  # another one was here: from now on


def stop_at(line: Line, start: Any) -> Any:
    """End a line, and find nothing behind an offset."""
    line.stop()
    return start


def test_the_offset_of_another_data_source_is_none_of_this_one(tmp_path: Path) -> None:
    run(tmp_path, params("numbers"))
    run(tmp_path, params("simple_numbers"))
    assert rows(tmp_path) == [*NUMBERS[:3], *NUMBERS[:2]]
