"""ClickHouse tables over its engine: changes, refused rows, tokens, fences, trouble."""
# pyright: basic

import json
import random
from dataclasses import replace

import pytest

from kaflow_engine.connectors.clickhouse.errors import ClickHouseAway, ClickHouseUnfit
from kaflow_engine.connectors.contract import Owner
from kaflow_engine.errors import TakenOver
from kaflow_engine.masking import remember_settings, without_secrets
from kaflow_engine.model.columns import Column
from tests.clickhouse_shim import PASSWORD, ClickHouseShim
from tests.engine.connectors.clickhouse_here import Table
from tests.engine.connectors.typed_output_here import OWNER

PAIRS = (Column("k", "VARCHAR"), Column("d", "DECIMAL(38,10)"), Column("n", "INTEGER"))
TWO = ("k", "d")


def pair(text, number, n=None):
    """Return the key of a row with both of its parts, and the row; None: it goes."""
    key = json.dumps({"k": text, "d": number})
    return key, None if n is None else [text, number, n]


pytestmark = pytest.mark.services


def test_the_last_change_of_a_key_counts(clickhouse, unique):
    table = Table(clickhouse, unique, key="k", changes=True)
    table.begin()
    table.write(1, ("a", ["a", "1"]), ("b", ["b", "1"]), ("a", ["a", "2"]), ("c", ["c", "1"]))
    table.write(2, ("b", None), ("c", None), ("c", ["c", None]), ("d", None))
    assert table.rows("k, n", final=True) == [("a", 2), ("c", None)]
    table.write(3, ("b", ["b", "3"]))
    clickhouse.ask(f"OPTIMIZE TABLE {unique} FINAL")
    table.write(4, ("a", None))
    assert table.rows("k, n", final=True) == [("b", 3), ("c", None)]


def test_a_block_may_hold_any_bytes(clickhouse, unique):
    table = Table(clickhouse, unique)
    table.begin()
    chance = random.Random(1)
    texts = [f"{chance.getrandbits(128):032x}" for _ in range(30_000)]
    table.write(1, *((None, [text, str(n)]) for n, text in enumerate(texts)))
    assert table.rows("n, k") == [(n, text) for n, text in enumerate(texts)]


KEYS = [
    ("BIGINT", ("7", "8")),
    ("DATE", ("2026-01-01", "2026-01-02")),
    ("UUID", (f"{0:032x}", f"{1:032x}")),
    ("ENUM('a', 'b')", ("a", "b")),
]


@pytest.mark.parametrize(("kind", "keys"), KEYS, ids=[each[0] for each in KEYS])
def test_keys_of_other_types(clickhouse, unique, kind, keys):
    columns = (Column("k", kind), Column("l", "INTEGER[]"), Column("n", "INTEGER"))
    table = Table(clickhouse, unique, columns, key="k", changes=True)
    table.begin()
    table.write(1, *((key, [key, "[1]", "1"]) for key in keys))
    table.write(2, (keys[0], None), (keys[1], [keys[1], "[]", "2"]))
    assert table.rows("l, n", final=True) == [([], 2)]


def test_keys_that_are_no_column(clickhouse, unique):
    groups = Table(clickhouse, f"{unique}g", (Column("n", "INTEGER"),), key="_key", changes=True)
    groups.begin()
    groups.write(1, ('{"a":1,"b":null}', ["1"]), ("x", ["2"]))
    groups.write(2, ("x", None))
    assert groups.rows("_key, n", final=True) == [('{"a":1,"b":null}', 1)]


def test_rows_that_the_server_refuses_are_named_and_the_others_kept(clickhouse, unique):
    window = "SETTINGS non_replicated_deduplication_window = 100"
    clickhouse.ask(
        f"CREATE TABLE {unique} (k LowCardinality(String), n Nullable(Int64), "
        f"CONSTRAINT small CHECK n < 10) ENGINE = MergeTree ORDER BY k {window}"
    )
    table = Table(clickhouse, unique)
    table.begin()
    rows = [(f"r{n}", [f"r{n}", str(n)]) for n in (1, 50, 2, 3, 60)]
    first = table.write(1, *rows, ("z", [None, "4"]))
    assert [(one.row, one.error) for one in first.refused] == [
        (1, "VIOLATED_CONSTRAINT"),
        (4, "VIOLATED_CONSTRAINT"),
        (5, "CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN"),
    ]
    assert first.rows == {table.output.name: 3}
    clickhouse.ask(f"ALTER TABLE {unique} DROP CONSTRAINT small")
    again = table.write(1, *rows, ("z", [None, "4"]))
    assert again.refused == first.refused  # the ledger knows: the letters of a batch stay the same
    assert [n for _, n in table.rows("k, n")] == [1, 2, 3]


class Killed(BaseException):
    pass


def cut_off(table, batch, *rows, point="piece_committed", **more):
    """Write rows, and end where they are there and the ledger does not know it."""

    def passing(at):
        if at == point:
            raise Killed

    with pytest.raises(Killed):
        table.write(batch, *rows, passing=passing, **more)


def test_a_block_that_comes_again_is_dropped_by_its_token(clickhouse, unique, monkeypatch):
    monkeypatch.setattr("kaflow_engine.connectors.clickhouse.rows._BLOCK", 2)
    table = Table(clickhouse, unique)
    table.begin()
    rows = [(f"r{n}", ["same", str(n % 2)]) for n in range(5)]  # blocks that are equal by content
    cut_off(table, 1, *rows)
    assert len(table.rows()) == 5
    assert not table.begin(replace(OWNER, epoch=2)).delivered(1)
    table.write(1, *rows, owner=replace(OWNER, epoch=2))
    assert len(table.rows()) == 5
    table.write(2, *rows, owner=replace(OWNER, epoch=2))
    assert len(table.rows()) == 10


def test_a_table_without_tokens_has_rows_twice_and_says_so(clickhouse, unique):
    clickhouse.ask(
        f"CREATE TABLE {unique} (k Nullable(String), n Int32) ENGINE = MergeTree ORDER BY tuple()"
    )
    with pytest.raises(ClickHouseUnfit, match="does not know blocks that come twice") as caught:
        Table(clickhouse, unique).look()
    table = Table(clickhouse, unique, delivery="at_least_once")
    assert table.begin().capabilities.guarantee == "at_least_once"
    cut_off(table, 1, ("a", ["a", "1"]))
    table.write(1, ("a", ["a", "1"]))
    assert table.rows("k, n") == [("a", 1), ("a", 1)]
    clickhouse.ask(caught.value.hint.removeprefix("run ").partition(", or write")[0])
    assert Table(clickhouse, unique).begin().capabilities.guarantee == "exactly_once"


def test_a_change_that_comes_again_counts_once(clickhouse, unique):
    table = Table(clickhouse, unique, key="k", changes=True)
    table.begin()
    table.write(1, ("a", ["a", "1"]), ("b", ["b", "1"]))
    cut_off(table, 2, ("a", ["a", "2"]), ("b", None))
    table.write(2, ("a", ["a", "2"]), ("b", None))
    assert table.rows("k, n, _version, _deleted", final=True) == [("a", 2, 2, 0)]


def test_another_state_goes_on_behind_the_rows_that_are_there(clickhouse, unique):
    table, other = Table(clickhouse, unique, key="k", changes=True), Owner(state="t", generation=1)
    table.begin()
    for batch in (1, 2, 3):
        table.write(batch, ("a", ["a", str(batch)]), ("b", ["b", str(batch)]))
    held = table.look(other)
    assert {(each.state, each.batch, each.mark) for each in held} == {("s", 3, "m")}
    table.hand_over(other)
    with pytest.raises(TakenOver):
        table.write(4, ("b", ["b", "2"]))
    new = replace(other, epoch=1)
    assert not table.begin(new).delivered(1)
    table.write(1, ("a", ["a", "7"]), owner=new)
    assert table.rows("k, n", final=True) == [("a", 7), ("b", 3)]


def test_a_task_that_wakes_up_behind_its_look_adds_no_row_twice(clickhouse, unique):
    table, newer = Table(clickhouse, unique), replace(OWNER, epoch=2)
    table.begin()

    def meanwhile(point):
        if point == "before_commit":
            table.begin(newer)
            table.write(1, ("a", ["a", "1"]), owner=newer)

    table.write(1, ("a", ["a", "1"]), passing=meanwhile)
    assert table.rows("k, n") == [("a", 1)]


def test_a_password_is_masked_wherever_it_turns_up(clickhouse, unique):
    remember_settings({"clickhouse": {"connections": {"x": clickhouse.connection}}})
    assert PASSWORD not in without_secrets(f"could not log in with {PASSWORD}")
    table = Table(clickhouse, unique)
    assert PASSWORD not in repr(table.output)
    wrong = {**table.output.connection, "password": "wrong-one-é"}
    table.output = replace(table.output, connection=wrong)
    with pytest.raises(ClickHouseUnfit, match="Authentication failed") as caught:
        table.begin()
    assert "wrong-one" not in str(caught.value)
    assert caught.value.hint.startswith("correct user and password of clickhouse.connections.test")


def test_a_block_whose_answer_is_lost_and_a_server_that_is_busy(clickhouse, unique, monkeypatch):
    monkeypatch.setattr("kaflow_engine.connectors.tables.retries.PAUSES", (0.01, 0.01))
    table = Table(clickhouse, unique)
    table.begin()
    clickhouse.trouble(match=f"INSERT INTO `default`.`{unique}`")  # it is done, and no answer comes
    table.write(1, ("a", ["a", "1"]))
    clickhouse.trouble(match=f"INSERT INTO `default`.`{unique}`", code=252, times=2)
    table.write(2, ("b", ["b", "2"]))
    clickhouse.trouble(match=f"INSERT INTO `default`.`{unique}`", code=252, times=3)
    with pytest.raises(ClickHouseAway, match="writing rows of output"):
        table.write(3, ("c", ["c", "3"]))
    clickhouse.trouble(match=f"INSERT INTO `default`.`{unique}`", code=497)
    with pytest.raises(ClickHouseUnfit) as caught:  # at once: no right heals by itself
        table.write(3, ("c", ["c", "3"]))
    assert caught.value.hint == "run GRANT SELECT, INSERT, CREATE TABLE ON `default`.*"
    table.write(3, ("c", ["c", "3"]))
    assert table.rows("k, n") == [("a", 1), ("b", 2), ("c", 3)]


def test_a_server_that_goes_and_comes_back(unique, monkeypatch):
    monkeypatch.setattr("kaflow_engine.connectors.tables.retries.PAUSES", (0.01,))
    with ClickHouseShim() as server:
        table = Table(server, unique)
        table.begin()
        table.write(1, ("a", ["a", "1"]))
        server.stop()
        with pytest.raises(ClickHouseAway, match="cannot be reached"):
            table.write(2, ("b", ["b", "2"]))
        server.start()
        table.write(2, ("b", ["b", "2"]))
        assert table.rows("k, n") == [("a", 1), ("b", 2)]


def test_rows_with_a_key_of_several_columns_are_replaced_and_go(clickhouse, unique):
    table = Table(clickhouse, unique, PAIRS, key="_key", key_columns=TWO, changes=True)
    table.begin()
    long = "1234567890123456789012345678.1234567891"
    table.write(1, pair("x", "1", "1"), pair("x", long, "2"), pair("y", "1", "3"))
    written = table.write(2, pair("x", "1", "4"), pair("x", long), pair(None, "1", "5"))
    assert table.rows("k, n", final=True) == [("x", 4), ("y", 3)]
    assert [one.message for one in written.refused] == ["column 'k' is part of the key, and NULL"]
    table.write(3, pair("y", "1"), pair("x", "1", "6"), pair("x", "1", "7"))
    table.write(3, pair("y", "1"), pair("x", "1", "6"), pair("x", "1", "7"))
    assert table.rows("k, n", final=True) == [("x", 7)]
