"""Postgres tables over a real server: types, merges, refused rows, what does not fit, fences."""
# pyright: basic

import datetime as dt
import decimal
import json
import math
import uuid
from dataclasses import replace

import psycopg
import pytest

from kaflow_engine.connectors.postgres.errors import PostgresAway
from kaflow_engine.connectors.postgres.types import unfit
from kaflow_engine.masking import remember_settings, without_secrets
from kaflow_engine.model.columns import Column
from kaflow_engine.testing.services.postgres import PASSWORD, PostgresServer
from tests.engine.connectors.postgres_here import Table, run
from tests.engine.connectors.typed_output_here import OWNER, traveling

pytestmark = pytest.mark.services

VALUES = [
    ("BOOLEAN", "true", True),
    ("TINYINT", "-128", -128),
    ("UINTEGER", "4294967295", 4294967295),
    ("BIGINT", "-9223372036854775808", -(2**63)),
    ("UBIGINT", "18446744073709551615", decimal.Decimal(2**64 - 1)),
    ("HUGEINT", "170141183460469231731687303715884105727", decimal.Decimal(2**127 - 1)),
    ("BIGNUM", str(2**256 - 1), decimal.Decimal(2**256 - 1)),
    ("BIGNUM", str(-(2**255)), decimal.Decimal(-(2**255))),
    ("DECIMAL(9,2)", "-1234567.80", decimal.Decimal("-1234567.80")),
    ("FLOAT", "0.1", 0.1),
    ("DOUBLE", "1.7976931348623157e+308", 1.7976931348623157e308),
    ("DOUBLE", "-inf", -math.inf),
    ("VARCHAR", "tab\t line\n cr\r back\\slash \\N é 😀 ''\"", None),
    ("VARCHAR", "", None),
    ("VARCHAR", "\\N", None),
    ("BLOB", "AAEC/w==", b"\x00\x01\x02\xff"),
    ("DATE", "2026-02-28", dt.date(2026, 2, 28)),
    ("TIMESTAMP", "2026-02-28 23:59:59.123456", dt.datetime(2026, 2, 28, 23, 59, 59, 123456)),
    ("TIMESTAMP_MS", "2026-02-28 23:59:59.123", dt.datetime(2026, 2, 28, 23, 59, 59, 123000)),
    ("TIME", "23:59:59.5", dt.time(23, 59, 59, 500000)),
    (
        "UUID",
        "00112233-4455-6677-8899-aabbccddeeff",
        uuid.UUID(int=0x112233445566778899AABBCCDDEEFF),
    ),
    ("INTERVAL", "1 day 02:00:00", dt.timedelta(days=1, hours=2)),
    ("JSON", '{"a": [1, "x\\n"]}', {"a": [1, "x\n"]}),
    ("ENUM('a', 'b')", "b", None),
]


@pytest.mark.parametrize(
    ("kind", "text", "value"), VALUES, ids=[f"{v[0]} {v[1][:9]!r}" for v in VALUES]
)
def test_a_value_of_every_type(postgres, unique, kind, text, value):
    table = Table(postgres, unique, (Column("v", kind), Column("w", kind)))
    table.begin()
    table.write(1, ("k", [text, None]))
    assert table.rows() == [(text if value is None else value, None)]
    assert table.read_back() == [(traveling(kind, text), None)]


def row(key, number):
    return key, None if number is None else [key, str(number)]


CONFLICTS = [
    ({"on_conflict": "nothing"}, [row("a", 1), row("a", 2)], [("a", 1), ("b", 9)]),
    (
        {"on_conflict": "nothing"},
        [row("b", 1), row("a", 1), row("a", None), row("a", 2), row("a", 3)],
        [("a", 2), ("b", 9)],
    ),
    (
        {"update_where": '{"n": ">"}'},
        [row("a", 3), row("a", 1), row("b", 8), row("a", 5), row("a", 4), row("b", 10)],
        [("a", 5), ("b", 10)],
    ),
    ({"update_where": '{"k": "<>", "n": ">"}'}, [row("b", 10)], [("b", 9)]),
    ({}, [row("b", 1), row("b", 2)], [("b", 2)]),
]


@pytest.mark.parametrize(("settings", "rows", "expected"), CONFLICTS)
def test_what_becomes_of_a_row_whose_key_is_there(postgres, unique, settings, rows, expected):
    table = Table(postgres, unique, key="k", changes=True)
    table.output = replace(table.output, settings={**table.output.settings, **settings})
    table.begin()
    table.write(1, row("b", 9))
    table.write(2, *rows)
    assert table.rows() == expected


BEFORE = [
    # what the table had, how it counts, the batches, what is there then
    ([("a", 5), ("b", 1)], "sum", [[row("a", 2)]], [("a", 7), ("b", 1)]),
    ([("a", 5)], "sum", [[row("a", 2)], [row("a", 3), row("c", 4)]], [("a", 8), ("c", 4)]),
    ([("a", 5)], "sum", [[row("a", 2), row("c", 4)], [row("a", None), row("c", None)]], [("a", 5)]),
    ([("a", None)], "sum", [[row("a", 2)]], [("a", 2)]),
    ([("a", 5)], "sum", [[("a", ["a", None])]], [("a", 5)]),
    ([("a", 5), ("b", 9)], "min", [[row("a", 7), row("b", 8)]], [("a", 5), ("b", 8)]),
    ([("a", 5), ("b", 9)], "max", [[row("a", 7), row("b", 8)]], [("a", 7), ("b", 9)]),
]


@pytest.mark.parametrize(("had", "how", "batches", "expected"), BEFORE)
def test_rows_are_added_to_those_that_were_there(postgres, unique, had, how, batches, expected):
    table = Table(postgres, unique, key="k", changes=True)
    settings = {**table.output.settings, "adds": f'{{"n": "{how}"}}'}
    table.output = replace(table.output, settings=settings)
    run(postgres, f"CREATE TABLE {unique} (k text PRIMARY KEY, n integer)")
    for key, number in had:
        run(postgres, f"INSERT INTO {unique} VALUES ('{key}', {number or 'NULL'})")
    table.begin()
    for number, rows in enumerate(batches, 1):
        table.write(number, *rows)
        table.write(number, *rows)  # it runs again
    assert table.rows() == expected
    table.begin(replace(OWNER, epoch=OWNER.epoch + 1))  # what is there now was not there before
    table.write(len(batches) + 1, row("new", 1), owner=replace(OWNER, epoch=OWNER.epoch + 1))
    assert table.rows() == sorted([*expected, ("new", 1)])


def test_rows_have_the_number_of_their_batch_and_those_of_two_stay(postgres, unique):
    table = Table(postgres, unique, key="k", changes=True)
    settings = {**table.output.settings, "batch_column": "epoch"}
    table.output = replace(table.output, settings=settings)
    table.begin()
    for batch in (1, 2, 3):
        table.write(batch, row(f"of {batch}", batch))
    table.write(3, row("of 3", 3))
    assert table.rows() == [("of 2", 2, 2), ("of 3", 3, 3)]
    table.begin(replace(OWNER, state="other"))
    table.write(1, row("again", 1), owner=replace(OWNER, state="other"))
    assert table.rows() == [("again", 1, 1)]


def test_times_before_our_era_and_with_a_zone(postgres, unique):
    kinds = (Column("d", "DATE"), Column("t", "TIMESTAMP WITH TIME ZONE"))
    table = Table(postgres, unique, kinds)
    table.begin()
    table.write(1, ("k", ["0044-03-15 (BC)", "2026-01-02 03:04:05+02"]))
    assert table.rows("d::text, t = '2026-01-02 01:04:05+00'") == [("0044-03-15 BC", True)]


def test_columns_that_have_no_type():
    columns = [Column("a", "INTEGER[]"), Column("b", "TIMESTAMP_NS"), Column("c" * 64, "INTEGER")]
    assert [each.hint for each in unfit(columns)] == [
        "write to_json(a) AS a: it is jsonb there",
        "write CAST(b AS TIMESTAMP) AS b",
        "select it under another name",
    ]


def test_the_last_change_of_a_key_stays(postgres, unique):
    run(postgres, f"CREATE SCHEMA {unique}")
    table = Table(postgres, f"{unique}.Order", key="k", changes=True)
    table.begin()
    table.write(1, ("a", ["a", "1"]), ("b", ["b", "1"]), ("a", ["a", "2"]), ("c", ["c", "1"]))
    table.write(2, ("b", None), ("c", None), ("c", ["c", None]), ("d", None))
    assert run(postgres, f'SELECT * FROM {unique}."Order" ORDER BY 1') == [("a", 2), ("c", None)]


def test_a_key_that_is_no_column(postgres, unique):
    table = Table(postgres, unique, (Column("n", "INTEGER"),), key="_key", changes=True)
    table.begin()
    table.write(1, ('{"a":1,"b":null}', ["1"]), ("x", ["2"]))
    table.write(2, ("x", None))
    assert table.rows("_key, n") == [('{"a":1,"b":null}', 1)]


PAIRS = (Column("a/b", "VARCHAR"), Column("d", "DECIMAL(38,10)"), Column("n", "INTEGER"))
TWO = ("a/b", "d")


def pair(text, number, n=None):
    """Return the key of a row with both of its parts, and the row; None: it goes."""
    key = json.dumps({"a/b": text, "d": number})
    return key, None if n is None else [text, number, n]


def test_rows_with_a_key_of_several_columns_are_replaced_and_go(postgres, unique):
    table = Table(postgres, unique, PAIRS, key="_key", key_columns=TWO, changes=True)
    table.begin()
    long = "1234567890123456789012345678.1234567891"
    table.write(1, pair("x", "1", "1"), pair("x", long, "2"), pair('"y\t', "1", "3"))
    written = table.write(2, pair("x", "1", "4"), pair("x", long), pair(None, "1", "5"))
    assert table.rows('"a/b", d, n') == [('"y\t', 1, 3), ("x", 1, 4)]
    assert [one.message for one in written.refused] == ["column 'a/b' is part of the key, and NULL"]
    table.write(3, pair('"y\t', "1"), pair(None, "1"), pair("x", "1", "6"), pair("x", "1", "7"))
    table.write(3, pair('"y\t', "1"), pair(None, "1"), pair("x", "1", "6"), pair("x", "1", "7"))
    assert table.rows('"a/b", d, n') == [("x", 1, 7)]


def test_rows_that_the_server_refuses_are_told_and_the_others_kept(postgres, unique):
    run(postgres, f"CREATE TABLE {unique} (k text UNIQUE, n integer CHECK (n < 10))")
    table = Table(postgres, unique)
    table.begin()
    rows = [(f"r{n}", [f"r{n}", str(n)]) for n in (1, 50, 2, 3, 60)]
    first = table.write(1, *rows, ("r2", ["r2", "4"]), ("z", ["nul\x00", "1"]))
    assert [(one.row, one.error) for one in first.refused] == [
        (1, "CheckViolation"),
        (4, "CheckViolation"),
        (5, "UniqueViolation"),
        (6, "CharacterNotInRepertoire"),
    ]
    assert first.rows == {table.output.name: 3}
    run(postgres, f"ALTER TABLE {unique} DROP CONSTRAINT {unique}_n_check")
    again = table.write(1, *rows, ("r2", ["r2", "4"]), ("z", ["nul\x00", "1"]))
    assert again.refused == first.refused  # the ledger knows: the letters of a batch stay the same
    assert [n for _, n in table.rows()] == [1, 2, 3]


def test_a_constraint_that_is_deferred_refuses_a_row_too(postgres, unique):
    run(postgres, f"CREATE TABLE {unique}_p (k text PRIMARY KEY)")
    run(postgres, f"INSERT INTO {unique}_p VALUES ('a')")
    run(
        postgres,
        f"CREATE TABLE {unique} (k text PRIMARY KEY REFERENCES {unique}_p "
        "DEFERRABLE INITIALLY DEFERRED, n int)",
    )
    table = Table(postgres, unique, key="k", changes=True)
    table.begin()
    found = table.write(1, ("a", ["a", "1"]), ("b", ["b", "1"]))
    assert [one.error for one in found.refused] == ["ForeignKeyViolation"]
    assert table.rows() == [("a", 1)]


def test_a_password_is_masked_wherever_it_turns_up(postgres):
    remember_settings({"postgres": {"connections": {"x": {"url": postgres.url}}}})
    assert PASSWORD not in without_secrets(f"could not log in with {PASSWORD}")
    assert PASSWORD not in without_secrets(postgres.url)


def test_a_new_run_waits_for_a_task_that_commits(postgres, unique):
    table, newer, seen = Table(postgres, unique), replace(OWNER, epoch=2), []
    table.begin()

    def meanwhile(point):
        if point == "before_commit":
            with psycopg.connect(postgres.url) as other:
                other.execute("SET lock_timeout = '50ms'")
                with pytest.raises(psycopg.errors.LockNotAvailable):
                    other.execute(f"UPDATE _kaflow_runs SET epoch = 2 WHERE target = '{unique}'")
                seen.append(point)

    table.write(1, ("a", ["a", "1"]), passing=meanwhile)
    assert seen == ["before_commit"]
    assert table.begin(newer).delivered(1)


def test_a_server_that_goes_and_comes_back(unique, monkeypatch):
    monkeypatch.setattr("kaflow_engine.connectors.tables.retries.PAUSES", (0.01,))
    with PostgresServer() as server:
        table = Table(server, unique)
        table.begin()
        table.write(1, ("a", ["a", "1"]))
        server.stop()
        with pytest.raises(PostgresAway):
            table.write(2, ("b", ["b", "2"]))
        server.start()
        table.write(2, ("b", ["b", "2"]))
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        run(server, f"{ended} WHERE pid <> pg_backend_pid()")
        table.write(3, ("c", ["c", "3"]))  # its connection was ended: it opens another
        assert table.rows() == [("a", 1), ("b", 2), ("c", 3)]
