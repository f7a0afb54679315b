"""Values of every type of a database as queries see them, and types that have no place here."""
# pyright: basic

from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest

from kaflow_engine.duck.wide.vectors import kept_bytes
from kaflow_engine.model.columns import Column
from tests.engine.connectors.database_here import (
    ClickHouseHere,
    PostgresHere,
    decoded,
    opened,
    read_on,
)

pytestmark = pytest.mark.services

UUID = "6c4b7e6e-0000-4000-8000-000000000001"
POSTGRES = [
    ("smallint", "-32768", "SMALLINT", -32768),
    ("integer", "2147483647", "INTEGER", 2147483647),
    ("bigint", "-9223372036854775808", "BIGINT", -(2**63)),
    ("real", "1.5", "FLOAT", 1.5),
    ("double precision", "1e300", "DOUBLE", 1e300),
    ("numeric(38,10)", "1234567890123456789012345678.0123456789", "DECIMAL(38,10)", None),
    ("numeric(78,0)", str(2**256 - 1), "BIGNUM", kept_bytes(2**256 - 1)),
    ("numeric(78,0)", str(-(2**255)), "BIGNUM", kept_bytes(-(2**255))),
    ("numeric(9,2)", "-0.05", "DECIMAL(9,2)", Decimal("-0.05")),
    ("boolean", "true", "BOOLEAN", True),
    ("text", "'it''s \"q\" \\ \u00fc\U0001f600' || chr(10) || chr(9)", "VARCHAR", None),
    ("varchar(5)", "''", "VARCHAR", ""),
    ("char(3)", "'a'", "VARCHAR", "a  "),
    ("uuid", f"'{UUID}'", "UUID", UUID),
    ("date", "'0001-01-01'", "DATE", date(1, 1, 1)),
    ("time", "'12:34:56.789012'", "TIME", time(12, 34, 56, 789012)),
    ("timestamp", "'1969-12-31 23:59:59.999999'", "TIMESTAMP", None),
    (
        "timestamptz",
        "'2026-07-01 02:00:00+02'",
        "TIMESTAMP WITH TIME ZONE",
        datetime(2026, 7, 1, tzinfo=UTC),
    ),
    ("timestamp(0)", "'2026-01-01'", "TIMESTAMP", datetime(2026, 1, 1)),
    ("interval", "'1 mon 2 days'", "VARCHAR", "1 mon 2 days"),
    ("json", 'E\'{"b":\\n1,  "a": 1.50}\'', "JSON", '{"b":1,"a":1.50}'),
    ("jsonb", "'{\"a\": [null]}'", "JSON", '{"a":[null]}'),
    ("bytea", r"'\x00ff5c0a'", "BLOB", b"\x00\xff\\\n"),
    ("bytea", f"decode('{'00' * 100}', 'hex')", "BLOB", bytes(100)),
    ("integer[]", "'{1,null}'", "INTEGER[]", [1, None]),
    ("text[]", '\'{"a,b",""}\'', "VARCHAR[]", ["a,b", ""]),
    ("numeric(5,1)[]", "'{1.5}'", "DECIMAL(5,1)[]", [Decimal("1.5")]),
    ("timestamptz[]", "'{2026-01-01+00}'", "TIMESTAMP WITH TIME ZONE[]", None),
    ("json[]", "array['{\"a\":1}']::json[]", "JSON", '[{"a":1}]'),
    ("inet", "'10.0.0.1'", "VARCHAR", "10.0.0.1"),
    ("pg_temp_mood", "'so so'", "VARCHAR", "so so"),
    ("pg_temp_price", "1.25", "DECIMAL(9,2)", Decimal("1.25")),
]
SEEN = {
    "numeric(38,10)": Decimal("1234567890123456789012345678.0123456789"),
    "text": 'it\'s "q" \\ \u00fc\U0001f600\n\t',
    "timestamp": datetime(1969, 12, 31, 23, 59, 59, 999999),
    "timestamptz[]": [datetime(2026, 1, 1, tzinfo=UTC)],
}
CLICKHOUSE = [
    ("Int8", "-128", "TINYINT", -128),
    ("Int64", "-9223372036854775808", "BIGINT", -(2**63)),
    ("UInt64", "18446744073709551615", "UBIGINT", 2**64 - 1),
    ("Int128", "'-170141183460469231731687303715884105'", "HUGEINT", None),
    ("Int256", f"'{-(2**255)}'", "I256", kept_bytes(-(2**255))),
    ("UInt256", f"'{2**256 - 1}'", "U256", kept_bytes(2**256 - 1)),
    ("Array(UInt256)", f"['{2**256 - 1}']", "BIGNUM[]", [kept_bytes(2**256 - 1)]),
    ("Float32", "1.5", "FLOAT", 1.5),
    ("Float64", "1e300", "DOUBLE", 1e300),
    ("Decimal(38, 10)", "'1234567890123456789012345678.0123456789'", "DECIMAL(38,10)", None),
    ("Bool", "true", "BOOLEAN", True),
    ("String", "'it\\'s \"q\" \\\\ / \u00fc\U0001f600\\n'", "VARCHAR", None),
    ("LowCardinality(String)", "''", "VARCHAR", ""),
    ("FixedString(2)", "'ab'", "VARCHAR", "ab"),
    ("Enum8('a' = 1, 'b' = 2)", "'b'", "VARCHAR", "b"),
    ("UUID", f"'{UUID}'", "UUID", UUID),
    ("IPv4", "'10.0.0.1'", "VARCHAR", "10.0.0.1"),
    ("Date", "'2026-01-01'", "DATE", date(2026, 1, 1)),
    ("Date32", "'1950-01-01'", "DATE", date(1950, 1, 1)),
    (
        "DateTime('Europe/Berlin')",
        "'2026-07-01 02:00:00'",
        "TIMESTAMP WITH TIME ZONE",
        datetime(2026, 7, 1, tzinfo=UTC),
    ),
    (
        "DateTime64(6, 'UTC')",
        "'2026-07-01 00:00:00.123456'",
        "TIMESTAMP WITH TIME ZONE",
        datetime(2026, 7, 1, 0, 0, 0, 123456, tzinfo=UTC),
    ),
    ("Array(Nullable(Int32))", "[1, NULL]", "INTEGER[]", [1, None]),
    ("Array(Array(String))", "[['a'], []]", "VARCHAR[][]", [["a"], []]),
    ("Map(String, Int32)", "{'a': 1}", "MAP(VARCHAR, INTEGER)", [("a", 1)]),
    (
        "Tuple(a Int8, `b c` String)",
        "(1, 'x')",
        'STRUCT("a" TINYINT, "b c" VARCHAR)',
        {"a": 1, "b c": "x"},
    ),
    ("Nullable(Int32)", "NULL", "INTEGER", None),
]
SEEN_THERE = {
    "Int128": Decimal("-170141183460469231731687303715884105"),
    "Decimal(38, 10)": Decimal("1234567890123456789012345678.0123456789"),
    "String": 'it\'s "q" \\ / \u00fc\U0001f600\n',
}


@pytest.mark.parametrize(("kind", "value", "type_here", "seen"), POSTGRES)
def test_postgres(postgres, tmp_path, unique, kind, value, type_here, seen):
    here = PostgresHere(postgres)
    if kind.startswith("pg_temp"):
        here.run(f"CREATE TYPE {unique}_mood AS ENUM ('ok', 'so so')")
        here.run(f"CREATE DOMAIN {unique}_price AS numeric(9, 2)")
    kind = kind.replace("pg_temp", unique)
    here.run(f"CREATE TABLE {unique} (id int PRIMARY KEY, a {kind})")
    here.run(f"INSERT INTO {unique} VALUES (1, {value}), (2, NULL)")
    columns, rows, bad = decoded(here, here.params(unique), tmp_path)
    assert columns == (Column("id", "INTEGER"), Column("a", type_here))
    assert [row["a"] for row in rows] == [SEEN.get(kind, seen), None]
    assert not bad


@pytest.mark.parametrize(("kind", "value", "type_here", "seen"), CLICKHOUSE)
def test_clickhouse(clickhouse, tmp_path, unique, kind, value, type_here, seen):
    here = ClickHouseHere(clickhouse)
    here.run(f"CREATE TABLE {unique} (id Int32, a {kind}) ENGINE = MergeTree ORDER BY id")
    here.run(f"INSERT INTO {unique} VALUES (1, {value})")
    columns, rows, bad = decoded(here, here.params(unique), tmp_path)
    assert columns == (Column("id", "INTEGER"), Column("a", type_here))
    assert [row["a"] for row in rows] == [SEEN_THERE.get(kind, seen)]
    assert not bad


@pytest.mark.parametrize(
    "value",
    ["'NaN'::float8", "'infinity'::timestamp", "'24:00'::time", "'{{1},{2}}'::int[]"],
)
def test_values_of_postgres_that_have_no_place_here(postgres, tmp_path, unique, value):
    """They are dead letters, never something else."""
    here = PostgresHere(postgres)
    here.run(f"CREATE TABLE {unique} AS SELECT 1 AS id, {value} AS a")
    here.run(f"ALTER TABLE {unique} ADD PRIMARY KEY (id)")
    _, rows, bad = decoded(here, here.params(unique), tmp_path)
    assert (rows, len(bad)) == ([], 1)


def test_values_of_clickhouse_that_have_no_place_here(clickhouse, tmp_path, unique):
    here = ClickHouseHere(clickhouse)
    here.run(
        f"CREATE TABLE {unique} (id Int32, a Float64, b String) ENGINE = MergeTree ORDER BY id"
    )
    here.run(
        f"INSERT INTO {unique} VALUES (1, nan, ''), (2, inf, ''), (3, 0, unhex('ff')), (4, 0, '')"
    )
    _, rows, bad = decoded(here, here.params(unique, page_size=9), tmp_path)
    assert ([row["id"] for row in rows], len(bad)) == ([4], 3)


def test_bytes_of_clickhouse_are_read_as_they_are_declared(clickhouse, tmp_path, unique):
    here = ClickHouseHere(clickhouse)
    here.run(
        f"CREATE TABLE {unique} (id Int32, a String, t Tuple(Int8)) ENGINE = MergeTree ORDER BY id"
    )
    here.run(f"INSERT INTO {unique} VALUES (1, unhex('ff00'), tuple(5))")
    declared = (Column("a", "BLOB"), Column("t", "VARCHAR"))
    columns, rows, bad = decoded(here, here.params(unique, columns=declared), tmp_path)
    assert (columns, rows, bad) == (declared, [{"a": b"\xff\x00", "t": "(5)"}], ())


def test_numbers_without_digits_are_read_as_they_are_declared(postgres, tmp_path, unique):
    here = PostgresHere(postgres)
    here.run(f"CREATE TABLE {unique} (id int PRIMARY KEY, a numeric, p point)")
    here.run(f"INSERT INTO {unique} VALUES (1, 1.25, '(1,2)'), (2, 1e40, NULL)")
    declared = (Column("a", "DECIMAL(38,9)"), Column("p", "VARCHAR"))
    _, rows, bad = decoded(here, here.params(unique, columns=declared), tmp_path)
    assert rows == [{"a": Decimal("1.25"), "p": "(1,2)"}]
    assert len(bad) == 1


@pytest.mark.parametrize(
    "key",
    [
        "toDate(t), s, t",
        "s",
        "f",
        "u",
        "e",
        "(s, u)",
        "d",
        "t6",
        "b",
        "cityHash64(s)",
    ],
)
def test_keys_of_clickhouse(clickhouse, tmp_path, unique, key):
    """Every type of a key comes back as it was: no row twice, none left out."""
    here = ClickHouseHere(clickhouse)
    here.run(
        f"CREATE TABLE {unique} (n Int32, t DateTime('Europe/Berlin'), t6 DateTime64(6, "
        "'America/New_York'), s LowCardinality(String), f FixedString(2), u UUID, e Enum8('z' = 1, "
        f"'a' = 2), d Decimal(9, 3), b Bool) ENGINE = MergeTree ORDER BY ({key})"
    )
    here.run(
        f"INSERT INTO {unique} SELECT number, toDateTime(1792890000 + number * 600, 'UTC'), "
        "fromUnixTimestamp64Micro(1792890000000000 + number * 600000001), "
        "concat('it\\'s ', unhex(hex(number % 7)), '\\\\'), substring(hex(number * 77), 1, 2), "
        "generateUUIDv4(), number % 2 + 1, toDecimal64(number % 11, 3) / 8, number % 2 "
        "FROM numbers(40)"
    )
    columns = (Column("n", "INTEGER"),)
    source = opened(here, here.params(unique, columns=columns), tmp_path)
    assert sorted(row["n"] for row in read_on(source)) == list(range(40))


@pytest.mark.parametrize(
    "key", ["i, s", "s", "u", "t", "tz", "d", "b", "c", "f, i", "day, i", "m, i", "by"]
)
def test_keys_of_postgres(postgres, tmp_path, unique, key):
    """Every type of a key comes back as it was: no row twice, none left out."""
    here = PostgresHere(postgres)
    here.run(f"CREATE TYPE {unique}_mood AS ENUM ('z', 'a')")
    here.run(
        f"""CREATE TABLE {unique} (n int, i int, s text, u uuid, t timestamp, tz timestamptz,
            d numeric, b bigint, c char(9), f float8, day date, m {unique}_mood, by bytea,
            PRIMARY KEY ({key}))"""
    )
    here.run(
        f"""INSERT INTO {unique} SELECT n, n, 'it''s "' || n || '\\', gen_random_uuid(),
            timestamp '2026-01-01' + n * interval '1.000001 s', now() + n * interval '1 h',
            n / 7.0, -n, 'c' || n, n / 3.0::float8, date '2026-01-01' + n % 5,
            (CASE n % 2 WHEN 0 THEN 'a' ELSE 'z' END)::{unique}_mood,
            decode(lpad(to_hex(n), 4, '0'), 'hex')
            FROM generate_series(0, 39) n"""
    )
    columns = (Column("n", "INTEGER"),)
    source = opened(here, here.params(unique, columns=columns), tmp_path)
    assert sorted(row["n"] for row in read_on(source)) == list(range(40))


def test_the_newest_rows_of_a_table_that_replaces(clickhouse, tmp_path, unique):
    """Those that are deleted are left out, wherever pages end; merges have not run."""
    here = ClickHouseHere(clickhouse)
    here.run(
        f"CREATE TABLE {unique} (id UInt64, v String, ver UInt64, gone UInt8) "
        "ENGINE = ReplacingMergeTree(ver, gone) ORDER BY id"
    )
    here.run(f"SYSTEM STOP MERGES {unique}")
    here.run(f"INSERT INTO {unique} SELECT number, 'old', 1, 0 FROM numbers(30)")
    here.run(f"INSERT INTO {unique} SELECT number, 'new', 2, number % 3 = 0 FROM numbers(20)")
    source = opened(here, here.params(unique), tmp_path)
    expected = {n: "new" if n < 20 else "old" for n in range(30) if n >= 20 or n % 3}
    found = [(row["id"], row["v"]) for row in read_on(source)]
    assert found == sorted(expected.items())


def test_all_rows_of_a_key_are_in_one_page(clickhouse, tmp_path, unique):
    here = ClickHouseHere(clickhouse)
    here.run(f"CREATE TABLE {unique} (k Int8, n Int32) ENGINE = MergeTree ORDER BY k")
    here.run(f"INSERT INTO {unique} SELECT number % 3, number FROM numbers(100)")
    source = opened(here, here.params(unique, page_size=10), tmp_path)
    assert source.latest() == {0: 34}
    assert sorted(row["n"] for row in read_on(source)) == list(range(100))
