"""Data sources of PySpark: each row once, wherever it is cut, and what is said of misfits."""

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kaflow_engine.connectors.journal.journal import Journal
from kaflow_engine.connectors.journal.receivers import Inlet
from kaflow_engine.connectors.journal.source import JournalSource
from kaflow_engine.connectors.pyspark.classes import MODULE
from kaflow_engine.connectors.pyspark.ddl import columns_of_ddl
from kaflow_engine.connectors.pyspark.kind import PySparkKind
from kaflow_engine.connectors.pyspark.receiving import PySparkRows
from kaflow_engine.connectors.pyspark.spool import MOST_ROWS
from kaflow_engine.connectors.sources.kinds import source_kind
from kaflow_engine.errors import KaflowError, SourceAway, SourceUnfit
from kaflow_engine.flow.origins.plugins import PySparkParams
from kaflow_engine.formats.json.reference import read_object
from kaflow_engine.model.columns import Column
from tests.engine.connectors.pyspark_here import HERE, NOW, NUMBERS, params, rows, run

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("most", [1, 2, 9])
@pytest.mark.parametrize("name", ["numbers", "simple_numbers"])
def test_each_row_is_there_once_wherever_it_is_cut(tmp_path: Path, name: str, most: int) -> None:
    while len(rows(tmp_path)) < len(NUMBERS):
        left = len(NUMBERS) - len(rows(tmp_path))
        run(
            tmp_path, params(name), min(most, -(-left // 3) if name == "numbers" else -(-left // 2))
        )
    assert rows(tmp_path) == NUMBERS


def test_a_reader_that_is_not_told_from_where(tmp_path: Path) -> None:
    run(tmp_path, params("old_numbers"), 3)
    assert rows(tmp_path) == NUMBERS


@pytest.mark.parametrize(
    ("count", "step", "pieces"), [(9_000, 4_000, 1), (50_000, 4_000, 13), (50_000, 25_000, 6)]
)
def test_a_batch_is_read_once_wherever_it_is_cut(
    tmp_path: Path, count: int, step: int, pieces: int
) -> None:
    said = params("table", bounded=True, options=(("rows", str(count)), ("step", str(step))))
    source = JournalSource(name="s", folder=tmp_path, ends_as="pyspark:table")
    sizes: list[int] = []
    while len(sizes) < pieces:
        assert not source.bounded
        sizes += run(tmp_path, said)
    assert max(sizes) <= MOST_ROWS
    line_ends(tmp_path, said)
    assert source.bounded
    assert [row["n"] for row in rows(tmp_path)] == list(range(count))
    assert not [*tmp_path.glob("plugin/*.arrows")]


def test_the_end_of_another_batch_is_none_of_this_one(tmp_path: Path) -> None:
    said = params("table", bounded=True, options=(("rows", "2"),))
    run(tmp_path, said)
    line_ends(tmp_path, said)
    run(tmp_path, params("every_type", bounded=True))
    assert [row.get("n") for row in rows(tmp_path)] == [0, 1, None, None]
    assert not JournalSource(name="s", folder=tmp_path, ends_as="pyspark:every_type").bounded


def test_a_range_that_is_gone(tmp_path: Path) -> None:
    said = params("table", bounded=True, options=(("rows", "50000"),))
    run(tmp_path, said)
    (tmp_path / "plugin" / "range.arrows").unlink()
    with pytest.raises(SourceUnfit, match=r"range.arrows' is gone, which has rows that no one"):
        run(tmp_path, said)


def line_ends(folder: Path, said: PySparkParams) -> None:
    """Let a run find that all is there; it waits to be ended."""
    journal = Journal(folder, NOW)
    inlet = Inlet(name="s", params=said, journal=journal, secrets={}, patience=0, settings=HERE)
    with PySparkRows().receiving([inlet]):
        kind = f"pyspark:{said.format}"
        until(lambda: JournalSource(name="s", folder=folder, ends_as=kind).bounded)
    journal.close()


def until(holds: Callable[[], bool]) -> None:
    waiting = threading.Event()
    for _ in range(500):
        if holds():
            return
        waiting.wait(0.02)
    raise AssertionError


def test_a_value_of_every_type_and_null(tmp_path: Path) -> None:
    said = params("every_type", bounded=True)
    columns = PySparkKind().sample(said, None, HERE)  # pyright: ignore[reportArgumentType]
    assert columns is not None
    run(tmp_path, said)
    source = JournalSource(name="s", folder=tmp_path)
    texts = source.read({0: 0}, source.latest())["value"].to_pylist()
    first, second = (read_object(text.decode(), columns) for text in texts)
    assert [str(value) for value in first[:6]] == ["True", "1", str(2**62), "1.5", "1.10", "a"]
    assert first[6] == b"\x00\xff"
    assert [str(value) for value in first[7:10]] == [
        "2026-01-02",
        "2026-01-02 03:04:05+00:00",
        "2026-01-02 03:04:05",
    ]
    assert first[10] == [1, None]
    assert first[12] == {"x": 1, "y": "b"}
    assert second == [None] * 13


def test_columns_that_are_declared_are_what_it_is_asked_for(tmp_path: Path) -> None:
    columns = (Column("n", "BIGINT"), Column("renamed", "VARCHAR"))
    run(tmp_path, params("table", bounded=True, columns=columns, options=(("rows", "2"),)))
    assert rows(tmp_path) == [{"n": 0, "renamed": "n0"}, {"n": 1, "renamed": "n1"}]


def test_it_may_heal_and_then_ends(tmp_path: Path) -> None:
    with pytest.raises(SourceAway, match="data source 'away': OSError: the server is away"):
        run(tmp_path, params("away"))


@pytest.mark.parametrize(
    ("said", "error", "hint"),
    [
        (
            params("table", options=(("rows", "2"),)),
            "data source 'table' has no reader of streams",
            "write read: batch",
        ),
        (
            params("numbers", bounded=True),
            "data source 'numbers' has no reader of batches",
            "write read: stream",
        ),
        (
            params("stuck"),
            "data source 'stuck' gives rows without another offset than {'n': 0}",
            "correct the data source: its `read` returns the offset behind its rows",
        ),
        (
            params("odd"),
            "column 'v' of data source 'odd' is of type variant, which has no form here",
            "declare `columns` of the source, and leave it out or name another type",
        ),
        (
            params("wordy"),
            "data source 'wordy' has the schema 'whatever it is', which cannot be read: it is no "
            "list of columns with types",
            "declare `columns` of the source: they are what it is asked for",
        ),
        (
            params("unsaid", bounded=True),
            "data source 'unsaid' says no schema of its own",
            "declare `columns` of the source: they are what it is asked for",
        ),
        (
            params("picky"),
            "data source 'picky' cannot be made: ValueError: option 'url' is missing",
            "correct its 'options'",
        ),
        (
            params("wrong"),
            "data source 'wrong' gives rows that are not as its schema: "
            "[DATA_SOURCE_RETURN_SCHEMA_MISMATCH] Return schema mismatch in the result from 'read' "
            "method. Expected: 2 columns, Found: 1 columns. Make sure the returned values match "
            "the required output schema.",
            "correct `columns` of the source, or the data source",
        ),
        (
            params("numbers", columns=(Column("n", "HUGEINT"),)),
            "PySpark has no type HUGEINT, which column 'n' is of",
            None,
        ),
        (
            params("nowhere"),
            "module 'tests.engine.connectors.data_sources_here' has 0 data sources called "
            "'nowhere'",
            "correct plugins.pyspark:nowhere.module in the configuration; it has: away, "
            "every_type, numbers, odd, old_numbers, picky, simple_numbers, sparse, stuck, table, "
            "unsaid, wordy, wrong",
        ),
    ],
    ids=lambda value: value.format if isinstance(value, PySparkParams) else "",
)
def test_what_does_not_fit(
    tmp_path: Path, said: PySparkParams, error: str, hint: str | None
) -> None:
    with pytest.raises(KaflowError) as caught:
        run(tmp_path, said)
    assert (caught.value.message, caught.value.hint) == (error, hint)


@pytest.mark.parametrize(
    ("settings", "error", "hint"),
    [
        (
            {},
            "no package offers the data source 'numbers'",
            "install its package, which has an entry point of 'kaflow.pyspark', or write plugins: "
            "{'pyspark:numbers': {module: <module>}} in the configuration",
        ),
        (
            {MODULE: "tests.engine.connectors.no_such_module"},
            "data source 'numbers' (module 'tests.engine.connectors.no_such_module') cannot be "
            "loaded: ModuleNotFoundError: No module named 'tests.engine.connectors.no_such_module'",
            "install its package into the environment of kaflow",
        ),
    ],
)
def test_a_class_that_is_not_there(settings: dict[str, str], error: str, hint: str) -> None:
    kind = source_kind("pyspark:numbers")
    with pytest.raises(SourceUnfit) as caught:
        kind.sample(params("numbers"), None, settings)  # pyright: ignore[reportArgumentType]
    assert (caught.value.message, caught.value.hint) == (error, hint)


def test_what_the_configuration_says_is_an_option_that_is_not_shown(tmp_path: Path) -> None:
    settings = {**HERE, "url": "https://me:word-of-rest@host"}
    said = replace(params("picky"), columns=(Column("n", "BIGINT"),))
    assert PySparkKind().sample(said, None, settings) == said.columns  # pyright: ignore
    journal = Journal(tmp_path, NOW)
    inlet = Inlet(name="s", params=said, journal=journal, secrets={}, patience=0, settings=settings)
    assert "word-of-rest" not in repr(inlet)
    journal.close()


def test_schemas_that_are_texts() -> None:
    found = columns_of_ddl("a STRING NOT NULL, `b c` DECIMAL(9, 2), d: INT")
    assert [column.name for column in found] == ["a", "b c", "d"]
