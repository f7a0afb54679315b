"""A Postgres table that does not fit is refused at the start, with the statement that helps."""
# pyright: basic

import builtins
import logging
import random
from dataclasses import replace

import pytest

from kaflow_engine.connectors.postgres.errors import PostgresUnfit
from kaflow_engine.model.columns import Column
from tests.engine.connectors.postgres_here import Table, run

pytestmark = pytest.mark.services

UNFIT = [
    ("k text", "it has no column 'n'", "ADD COLUMN"),
    ("k text, n bigint", None, ""),
    ("k text, n numeric", None, ""),
    (
        "k varchar(9), n integer",
        "its column 'k' is character varying(9), and VARCHAR needs text",
        "TYPE text",
    ),
    ("k text, n smallint", "its column 'n' is smallint, and INTEGER needs integer", "TYPE integer"),
    (
        "k text, n integer, more text NOT NULL",
        "its column 'more' must have a value",
        "DROP NOT NULL",
    ),
    ("k text, n integer, more text NOT NULL DEFAULT 'x'", None, ""),
    ("k text, n integer GENERATED ALWAYS AS (1) STORED", "its column 'n' is generated", "do not"),
]


@pytest.mark.parametrize(("columns", "said", "cure"), UNFIT, ids=[each[0] for each in UNFIT])
def test_a_table_is_compared_with_the_plan(postgres, unique, columns, said, cure):
    run(postgres, f"CREATE TABLE {unique} ({columns})")
    table = Table(postgres, unique)
    if said is None:
        table.begin()
        table.write(1, ("a", ["a", "1"]))
        return
    with pytest.raises(PostgresUnfit) as caught:
        table.look()
    assert said in caught.value.message
    assert cure in caught.value.hint


@pytest.mark.parametrize(
    ("kind", "taken"),
    [
        ("numeric(78,0)", True),
        ("numeric", True),
        ("numeric(80,2)", True),
        ("numeric(77,0)", False),
        ("numeric(78,2)", False),
        ("text", False),
        ("double precision", False),
    ],
)
def test_a_column_of_wide_integers_has_78_digits(postgres, unique, kind, taken):
    run(postgres, f"CREATE TABLE {unique} (n {kind})")
    table = Table(postgres, unique, (Column("n", "BIGNUM"),))
    if taken:
        table.begin()
        table.write(1, ("a", [str(2**256 - 1)]))
        assert run(postgres, f"SELECT n = {2**256 - 1} FROM {unique}") == [(True,)]
        return
    with pytest.raises(PostgresUnfit) as caught:
        table.look()
    assert f"its column 'n' is {kind}, and BIGNUM needs numeric(78,0)" in caught.value.message
    assert "TYPE numeric(78,0)" in caught.value.hint


def test_ten_thousand_numbers_of_256_bits_are_those_of_python(postgres, unique):
    dice = random.Random(11)
    sizes = (dice.randrange(256) for _ in range(10_000))
    numbers = [dice.randint(-(2**255), 2**256 - 1) >> size for size in sizes]
    table = Table(postgres, unique, (Column("k", "BIGINT"), Column("n", "BIGNUM")))
    table.begin()
    table.write(1, *(("a", [str(k), str(n)]) for k, n in enumerate(numbers)))
    stored = run(postgres, f"SELECT n::text, (n * 3 - 1)::text FROM {unique} ORDER BY k")
    assert stored == [(str(n), str(n * 3 - 1)) for n in numbers]
    in_order = run(postgres, f"SELECT n::text AS text FROM {unique} ORDER BY n")
    assert in_order == [(str(n),) for n in sorted(numbers)]


def test_a_key_must_be_unique_and_the_table_there(postgres, unique):
    table = Table(postgres, unique, key="k", changes=True, create=False)
    with pytest.raises(PostgresUnfit, match=f"there is no table '{unique}'") as caught:
        table.begin()
    create = caught.value.hint.partition("run ")[2]
    run(postgres, create.replace(', PRIMARY KEY ("k")', ""))
    with pytest.raises(PostgresUnfit, match="nothing keeps it unique") as caught:
        table.begin()
    run(postgres, caught.value.hint.removeprefix("run "))
    table.begin()
    with pytest.raises(PostgresUnfit, match=f"there is no table '{unique}x.t'"):
        Table(postgres, f"{unique}x.t", create=False).begin()


def test_a_schema_is_created_with_its_table_by_who_may(postgres, unique, caplog):
    run(postgres, f"CREATE ROLE {unique} LOGIN PASSWORD 'secret-of-role'")
    table = Table(postgres, f"{unique}.t")
    mine = table.output
    url = postgres.url_of(unique, "secret-of-role")
    table.output = replace(mine, connection={"url": url})
    with pytest.raises(PostgresUnfit, match=f"there is no schema '{unique}'") as caught:
        table.begin()
    assert caught.value.hint == f'run CREATE SCHEMA "{unique}"'
    table.output = mine
    with caplog.at_level(logging.INFO, "kaflow.postgres"):
        table.begin()
        table.begin()
    assert [record.getMessage() for record in caplog.records] == [f"created table '{unique}.t'"]


def test_a_login_without_rights(postgres, unique):
    run(postgres, f"CREATE TABLE {unique} (k text, n integer)")
    run(postgres, f"CREATE ROLE {unique} LOGIN PASSWORD 'secret-of-role'")
    table = Table(postgres, unique)
    table.output = replace(
        table.output, connection={"url": postgres.url_of(unique, "secret-of-role")}
    )
    with pytest.raises(PostgresUnfit, match="has no right to INSERT") as caught:
        table.begin()
    assert caught.value.hint == f'run GRANT INSERT ON "{unique}" TO "{unique}"'
    table.output = replace(table.output, connection={"url": postgres.url_of(unique, "wrong-one")})
    with pytest.raises(PostgresUnfit, match="authentication failed") as caught:
        table.begin()
    assert "wrong-one" not in str(caught.value)
    assert "secret" not in repr(table.output)


def test_without_the_driver_it_says_how_to_get_it(postgres, unique, monkeypatch):
    imported = builtins.__import__

    def missing(name, *args, **kwargs):
        if name == "psycopg":
            raise ImportError(name)
        return imported(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(PostgresUnfit, match="psycopg, which is not installed") as caught:
        Table(postgres, unique).begin()
    assert caught.value.hint == "run pip install 'kaflow-dagster[postgres]'"


UNIQUE = [
    ("UNIQUE (k, n)", True),
    ("PRIMARY KEY (n, k)", True),
    ("UNIQUE (k), UNIQUE (n)", False),
    ("UNIQUE (k, n, more)", False),
    ("UNIQUE (k) INCLUDE (n)", False),
]


@pytest.mark.parametrize(("index", "fits"), UNIQUE, ids=[each[0] for each in UNIQUE])
def test_a_key_of_several_columns_is_that_of_one_index(postgres, unique, index, fits):
    run(postgres, f"CREATE TABLE {unique} (k text, n integer, more text, {index})")
    table = Table(postgres, unique, key="_key", key_columns=("k", "n"), changes=True)
    if fits:
        table.look()
        return
    with pytest.raises(PostgresUnfit) as caught:
        table.look()
    assert "its columns 'k' and 'n' are the key of the rows" in caught.value.message
    assert caught.value.hint == f'run ALTER TABLE "{unique}" ADD PRIMARY KEY ("k", "n")'
