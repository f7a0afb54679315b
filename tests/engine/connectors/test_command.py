"""Statements over the rows of a batch: what they see, what they may touch, and when they run."""

import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from kaflow_engine.connectors.command.errors import CommandAway, CommandUnfit
from kaflow_engine.connectors.command.outputs import CommandOutlet
from kaflow_engine.connectors.contract import FinishedBatch, Output, Owner, TaskPart
from kaflow_engine.errors import StateError, TakenOver
from kaflow_engine.flow.records import DELETED, EVENT_TIME, KEY, SLOT
from kaflow_engine.model.columns import Column
from kaflow_engine.model.outputs.connection_specs import CommandConnection

COLUMNS = (Column("id", "BIGINT"), Column("name", "VARCHAR"))
UPSERT = """
DELETE FROM shop.kept USING batch WHERE kept.id = batch._key::BIGINT AND _op = 'delete';
INSERT INTO shop.kept SELECT id, name FROM batch WHERE _op <> 'delete'
ON CONFLICT (id) DO UPDATE SET name = excluded.name
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(path) as made:
        made.execute("CREATE TABLE kept (id BIGINT PRIMARY KEY, name VARCHAR)")
    return path


def output(
    shop: Path, sql: str, *, ledger: str | None = None, folders: tuple[Path, ...] = ()
) -> Output:
    connection = CommandConnection(
        setup=f"ATTACH '{shop}' AS shop", folders=tuple(map(str, folders))
    )
    return Output(
        name="command:rows",
        place="command:rows",
        columns=COLUMNS,
        changes=True,
        settings={"connection": "shop", "sql": sql, "ledger": ledger},
        connection=connection.settings,
    )


def rows(*ids: int, gone: tuple[int, ...] = ()) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([None if n in gone else n for n in ids], pa.int64()),
            "name": pa.array([f"é{n}" for n in ids]),
            KEY: pa.array([str(n) for n in ids]),
            DELETED: pa.array([n in gone for n in ids]),
            SLOT: pa.array([0] * len(ids), pa.int32()),
            EVENT_TIME: pa.array([0] * len(ids), pa.int64()),
        }
    )


def deliver(to: Output, *parts: pa.Table, batch: int = 7, epoch: int = 1, mark: str = "m") -> None:
    outlet, owner = CommandOutlet(), Owner(state="abc", generation=2, epoch=epoch)
    sink, task = outlet.open(to, parts[0].schema, owner, None), outlet.task(to, owner)
    written = [task.write(TaskPart(rows=part, batch=batch, epoch=epoch)) for part in parts]
    notes = [note for each in written for note in each.notes]
    sink.commit(FinishedBatch(number=batch, mark=mark, notes=notes))


def kept(shop: Path, sql: str = "FROM kept ORDER BY ALL") -> list[tuple[object, ...]]:
    with duckdb.connect(shop, read_only=True) as made:
        return made.execute(sql).fetchall()


def test_a_batch_is_the_rows_of_all_tasks_in_order(shop: Path) -> None:
    sql = "CREATE TABLE shop.seen AS SELECT * FROM batch"
    deliver(output(shop, sql), rows(3, 1), rows(2, gone=(2,)))
    assert kept(shop, "FROM seen ORDER BY _row") == [
        (3, "é3", "upsert", "3", 1),
        (1, "é1", "upsert", "1", 2),
        (None, "é2", "delete", "2", 3),
    ]


def test_several_statements_are_one_transaction(shop: Path) -> None:
    """No other thread of the process has this connection (D16 of SQLFlow)."""
    deliver(output(shop, UPSERT), rows(1, 2))
    deliver(output(shop, UPSERT), rows(2, 3, gone=(2,)))
    assert kept(shop) == [(1, "é1"), (3, "é3")]
    with pytest.raises(CommandUnfit, match="Duplicate key"):
        deliver(output(shop, f"{UPSERT}; INSERT INTO shop.kept SELECT 1, 'x' FROM batch"), rows(4))
    assert kept(shop) == [(1, "é1"), (3, "é3")]


def test_a_batch_without_rows_runs_nothing(shop: Path) -> None:
    deliver(output(shop, "INSERT INTO shop.kept SELECT 1, count(*) FROM batch"), rows(), rows())
    assert kept(shop) == []


def test_files_are_written_where_the_configuration_says(shop: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    sql = f"COPY (SELECT id FROM batch) TO '{folder}/part-{{batch}}.parquet'"
    for _ in range(2):  # a batch that runs again writes the same file
        deliver(output(shop, sql, folders=(folder,)), rows(1, 2))
    assert [file.name for file in folder.iterdir()] == ["part-7.parquet"]
    assert duckdb.sql(f"FROM '{folder}/part-7.parquet'").fetchall() == [(1,), (2,)]


@pytest.mark.parametrize(
    "sql",
    [
        "COPY batch TO '{tmp}/elsewhere.csv'",
        "COPY batch TO '{tmp}/out/../elsewhere.csv'",
        "INSERT INTO shop.kept SELECT 1, content FROM read_text('/etc/hostname'), batch",
        "CREATE TABLE shop.x AS SELECT * FROM 'https://example.com/x.csv', batch",
        "CREATE PERSISTENT SECRET batch (TYPE s3)",
    ],
)
def test_nothing_else_can_be_touched(shop: Path, tmp_path: Path, sql: str) -> None:
    (tmp_path / "out").mkdir()
    to = output(shop, sql.replace("{tmp}", str(tmp_path)), folders=(tmp_path / "out",))
    with pytest.raises(CommandUnfit) as caught:
        deliver(to, rows(1))
    assert caught.value.outage == "bad settings"
    assert kept(shop) == []
    assert not (tmp_path / "elsewhere.csv").exists()


def test_a_database_that_another_process_has_may_come_back(shop: Path) -> None:
    program = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(1, flush=True); input()"
    command = [sys.executable, "-c", program, str(shop)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "1\n"
        with pytest.raises(CommandAway, match="Could not set lock") as caught:
            deliver(output(shop, UPSERT), rows(1))
        assert caught.value.outage == "retry"
        other.communicate("\n")
    deliver(output(shop, UPSERT), rows(1))
    assert kept(shop) == [(1, "é1")]


@pytest.mark.parametrize("ledger", [None, "shop.ledger"])
def test_a_start_tries_the_statements_before_it_takes_over(shop: Path, ledger: str | None) -> None:
    outlet, owner = CommandOutlet(), Owner(state="abc", generation=2, epoch=1)
    bad = output(shop, "INSERT INTO shop.lost SELECT id FROM batch", ledger=ledger)
    with pytest.raises(CommandUnfit, match="trying the statements of output 'command:rows' failed"):
        outlet.look(bad, rows().schema, owner)
    good = output(shop, "INSERT INTO shop.kept SELECT 1, count(*) FROM batch", ledger=ledger)
    assert outlet.look(good, rows().schema, owner) == ()
    assert kept(shop) == []
    assert outlet.look(output(shop, "COPY batch TO 'nowhere.csv'"), rows().schema, owner) == ()


def test_a_key_twice_in_one_batch_says_what_to_do(shop: Path) -> None:
    with pytest.raises(CommandUnfit) as caught:
        deliver(output(shop, "INSERT INTO shop.kept SELECT id, name FROM batch"), rows(1, 1))
    assert caught.value.hint is not None
    assert "_row" in caught.value.hint


def test_a_connection_is_needed(shop: Path) -> None:
    to = Output(name="command:rows", place="", settings={"connection": "shop", "sql": "x"})
    with pytest.raises(CommandUnfit, match="is not in the configuration"):
        deliver(to, rows(1))


def test_with_a_ledger_a_batch_runs_once(shop: Path) -> None:
    to = output(shop, "INSERT INTO shop.kept SELECT id, name FROM batch", ledger="shop.ledger")
    deliver(to, rows(1))
    deliver(to, rows(1), epoch=2)
    deliver(to, rows(2), batch=8, epoch=2)
    assert kept(shop) == [(1, "é1"), (2, "é2")]
    assert kept(shop, "FROM ledger") == [("abc", 2, 2, 8, "m", 1)]


def test_a_run_that_was_replaced_adds_nothing(shop: Path) -> None:
    to = output(shop, "INSERT INTO shop.kept SELECT id, name FROM batch", ledger="shop.ledger")
    outlet, owner = CommandOutlet(), Owner(state="abc", generation=2, epoch=1)
    old = outlet.open(to, rows().schema, owner, None)
    notes = outlet.task(to, owner).write(TaskPart(rows=rows(1), batch=7, epoch=1)).notes
    deliver(to, rows(1), epoch=2)
    with pytest.raises(TakenOver):
        old.commit(FinishedBatch(number=8, mark="m", notes=notes))
    with pytest.raises(TakenOver):
        outlet.open(to, rows().schema, owner, None)
    assert kept(shop) == [(1, "é1")]


@pytest.mark.parametrize(
    ("given", "mark", "says"),
    [((1, 2), "other", "another copy of the state was run"), ((1,), "m", "has 1 now")],
)
def test_another_batch_of_that_number_is_refused(
    shop: Path, given: tuple[int, ...], mark: str, says: str
) -> None:
    to = output(shop, "INSERT INTO shop.kept SELECT id, name FROM batch", ledger="shop.ledger")
    deliver(to, rows(1, 2))
    with pytest.raises(StateError, match=says):
        deliver(to, rows(*given), epoch=2, mark=mark)
    assert kept(shop) == [(1, "é1"), (2, "é2")]


def test_a_ledger_lies_in_the_database_that_is_written(shop: Path, tmp_path: Path) -> None:
    connection = CommandConnection(
        setup=f"ATTACH '{shop}' AS shop; ATTACH '{tmp_path}/other.duckdb' AS other"
    )
    to = Output(
        name="command:rows",
        place="",
        columns=COLUMNS,
        settings={
            "connection": "shop",
            "sql": "INSERT INTO shop.kept SELECT id, name FROM batch",
            "ledger": "other.ledger",
        },
        connection=connection.settings,
    )
    with pytest.raises(CommandUnfit, match="can only write to a single attached") as caught:
        deliver(to, rows(1))
    assert caught.value.hint == (
        "the ledger and what the statements write must be in the same database"
    )
    assert kept(shop) == []


def test_passwords_of_the_setup_are_not_shown(shop: Path) -> None:
    to = output(shop, "INSERT INTO shop.kept SELECT id, name FROM batch")
    assert "ATTACH" not in repr(to)
