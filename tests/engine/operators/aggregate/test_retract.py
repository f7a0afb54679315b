"""Groups of a table's rows: rows come, change and are taken away, and results stay those of SQL.

The table is made of the last `v` and `w` of each `k`: `w` is the group of a row, and a row whose
`v` is negative is not there.
"""

# pyright: basic

import json
import random
from dataclasses import replace

import duckdb
import pytest

from kaflow_engine.flow.operators import Aggregate, Project
from kaflow_engine.model.columns import Column
from tests.engine.operators.aggregate.flows import Running, aggregate_of, flow

pytestmark = pytest.mark.slow

LAST = {"v": "last(v)", "w": "last(w)"}
VALUES = {
    "INTEGER": ["0", "1", "-7", "3", "100"],
    "BOOLEAN": ["TRUE", "FALSE"],
    "HUGEINT": ["'0'", "'9999999999999999999999999999999999'", "'-1'", "'-99999999999999999999'"],
    "DECIMAL(10,2)": ["0.05", "-0.05", "-3.33", "99999999.99"],
    "DECIMAL(38,4)": ["'0.0001'", "'-123456789012345678901234567890.9999'", "'12345.6789'"],
    "DOUBLE": ["0.5", "'-0.0'", "1e17", "1.0", "'nan'", "'inf'", "-2.25"],
    "VARCHAR": ["''", "'a'", "'b\"]'", "'null'"],
}
ANY = ["count(*)", "count(v)", "count(DISTINCT v)", "first(v)", "last(v)", "any_value(v)"]
ANY += ["min(v)", "max(v)", "list(v )", "list(v ORDER BY w DESC, v)", "arg_max(v, w)", "mode(v)"]
ANY += ["count(v) FILTER (WHERE w > 1)", "string_agg(v::VARCHAR, ',' )"]
NUMBERS = ["sum(v)", "avg(v)", "sum(v) FILTER (WHERE w > 1)", "median(v)", "quantile_cont(v, 0.3)"]
SUBTRACTED = ["count(*)", "count(v)"]
CALLS = {
    "INTEGER": [*NUMBERS, "bit_xor(v)", "bit_and(v)", "product(v)", "stddev(v)"],
    "BOOLEAN": ["bool_and(v)", "bool_or(v)", "count_if(v)", "sum(v)"],
    "HUGEINT": ["sum(v)", "avg(v)"],
    "DECIMAL(10,2)": NUMBERS,
    "DECIMAL(38,4)": ["sum(v)", "avg(v)"],
    "DOUBLE": NUMBERS,
    "VARCHAR": [],
}


def over_table(given, kind="INTEGER", key=True, each=True, present='"r1.v" >= 0', **more):
    """A flow that groups the rows of a table; of a row `v` is the place of a value of a type."""
    groups = aggregate_of(2, key, given, kind=kind, each=each, retracts=True)
    in_order = any(result.keeps for result in groups.results)  # they may follow the order of rows
    table = aggregate_of(1, True, LAST, each=each or in_order)
    if key:
        groups = replace(groups, keys=(Column("k", "INTEGER"),))
    made = flow(table, groups, **more)
    old = made.operators[3]
    value = f'([NULL, {", ".join(VALUES[kind])}]::{kind}[])["r1.v" + 1]'
    columns = [(groups.arguments[0], value), (groups.arguments[1], '"r1.v"')]
    if key:
        columns.insert(0, (groups.keys[0], '"r1.w"'))
    new = replace(old, columns=tuple(columns), where=present)
    operators = tuple(new if each == old else each for each in made.operators)
    return Running(replace(made, operators=operators))


class Table:
    """The table: rows in the order in which they took their present form."""

    def __init__(self, key):
        self.key, self.rows, self.begun = key, {}, key

    def take(self, k, v, w):
        row = (w if self.key else 0, v) if v >= 0 else None
        if self.rows.get(k) != row:
            self.rows.pop(k, None)
            if row is not None:
                self.rows[k] = row
                self.begun = True

    def groups(self, con, given, kind):
        values = f"([NULL, {', '.join(VALUES[kind])}]::{kind}[])"
        con.execute(f"CREATE OR REPLACE TABLE r(n INTEGER, g INTEGER, v {kind}, w INTEGER)")
        for n, (g, v) in enumerate(self.rows.values()):
            con.execute(f"INSERT INTO r VALUES (?, ?, {values}[? + 1], ?)", [n, g, v, v])
        if not self.begun:
            return {}
        by = "g" if self.key else "()"
        first = "g" if self.key else ""
        chosen = ", ".join(f"({sql})::VARCHAR" for sql in given.values())
        made = con.sql(
            f"SELECT to_json([{first}]::VARCHAR[])::VARCHAR, {chosen} "
            f"FROM (FROM r ORDER BY n) GROUP BY {by}"
        )
        return {key: list(row) for key, *row in made.fetchall()}


def records(chance, kind, count):
    """Random records: rows come, change, move to another group, and go."""
    for n in range(count):
        v = chance.choice([-1, *range(len(VALUES[kind]) + 1)])
        yield (n, chance.choice("abcdef"), v, chance.randint(1, 3))


WAYS = {
    "each, kept": (True, True, True),
    "coalesced, kept, one group": (True, False, False),
    "each, subtracted, one group": (False, False, True),
    "coalesced, subtracted": (False, True, False),
}


@pytest.mark.parametrize(("kept", "key", "each"), WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("kind", VALUES)
def test_groups_are_those_of_sql_after_each_record(kind, kept, key, each):
    chance = random.Random(f"{kind} {kept} {key} {each}")
    chosen = [*CALLS[kind], *ANY] if kept else [*SUBTRACTED, *CALLS[kind][:2]]
    given = {f"c{n}": sql for n, sql in enumerate(chosen)}
    texts = {name: ("VARCHAR", f'"r2.{name}"::VARCHAR') for name in given}
    run = over_table(given, kind, key, each, select=texts)
    groups = run.flow.operators[4]
    assert isinstance(groups, Aggregate)
    assert kept == any(result.keeps for result in groups.results) or kind == "DOUBLE"
    table, held, left = Table(key), {}, list(records(chance, kind, 12))
    with duckdb.connect(config={"threads": 1}) as con:
        while left:
            cut = chance.choice([1, 1, 2, 5])
            for row in run.batch(*left[:cut]):
                *parts, _, values = row
                held[json.dumps(parts)] = values
            for _, k, v, w in left[:cut]:
                table.take(k, v, w)
            left = left[cut:]
            wanted = table.groups(con, given, kind)
            assert {k: v for k, v in held.items() if v is not None} == wanted


ONE = {"n": "count(*)", "s": "sum(v)"}


def test_a_group_without_rows_is_deleted_and_forgotten():
    run = over_table(ONE)
    assert run.batch((50, "a", 1, 7), (60, "b", 3, 7)) == [("7", 50, [1, 0]), ("7", 60, [2, -7])]
    assert run.batch((70, "a", 1, 8)) == [("7", 70, [1, -7]), ("8", 70, [1, 0])]
    assert run.batch((40, "b", -1, 7)) == [("7", 70, None)]  # ts never goes back
    assert run.batch((30, "c", 1, 7)) == [("7", 30, [1, 0])]  # a group of its own
    before = run.entries
    assert run.batch((80, "a", -1, 8), (80, "c", -1, 7)) == [("8", 80, None), ("7", 80, None)]
    assert run.entries == before - 2


@pytest.mark.parametrize("given", [ONE, {**ONE, "l": "list(v )"}], ids=["subtracted", "kept"])
@pytest.mark.parametrize("each", [True, False])
def test_a_group_that_ends_and_begins_in_one_batch(given, each):
    run = over_table(given, each=each)
    more = [[v] for name, v in (("l", [1]),) if name in given]
    run.batch((50, "a", 1, 7))
    found = run.batch((60, "a", -1, 7), (55, "b", 2, 7), (56, "c", 2, 9), (57, "c", -1, 9))
    assert found[-1] == ("7", 55, [1, 1, *more[0]] if more else [1, 1]) or each
    assert (("7", 60, None) in found) == each
    assert [row for row in found if row[0] == "9"] == (
        [("9", 56, [1, 1, [1]] if more else [1, 1]), ("9", 57, None)] if each else []
    )
    assert run.batch((70, "b", -1, 7)) == [("7", 70, None)]


def test_the_only_group_stays_without_rows():
    calls = {**ONE, "d": "count(DISTINCT v)", "l": "list(v )"}
    run = over_table(calls, key=False)
    assert run.batch((1, "a", -1, 1)) == []
    assert run.batch((2, "a", 4, 1)) == [(2, [1, 3, 1, [3]])]
    assert run.batch((3, "a", -1, 1)) == [(3, [0, None, 0, None])]
    assert run.batch((4, "b", 4, 1)) == [(4, [1, 3, 1, [3]])]


def test_a_row_that_stays_what_it_is_for_the_group_is_no_change():
    run = over_table({"l": "list(v )"}, key=False)
    run.batch((1, "a", 1, 1), (2, "b", 2, 1))
    assert run.batch((3, "a", 1, 2)) == []  # `w` is not read
    assert run.batch((4, "b", 4, 2)) == [(4, [[0, 3]])]


def test_having_deletes_and_inserts_as_rows_go_and_come():
    run = over_table(ONE, where='"r2.n" > 1')
    assert run.batch((1, "a", 1, 7)) == []
    assert run.batch((2, "b", 1, 7)) == [("7", 2, [2, 0])]
    assert run.batch((3, "a", -1, 7)) == [("7", 3, None)]
    assert run.batch((4, "c", 2, 7)) == [("7", 4, [2, 1])]


def test_a_float_that_is_taken_away_leaves_what_there_was():
    run = over_table({"s": "sum(v)", "a": "avg(v)"}, "DOUBLE")
    run.batch((1, "a", 3, 7), (2, "b", 4, 7))  # 1e17 and 1.0
    assert run.batch((3, "a", -1, 7)) == [("7", 3, [1.0, 1.0])]


@pytest.mark.parametrize("kind", ["HUGEINT", "DECIMAL(38,4)"])
def test_a_sum_that_overflows_is_right_once_rows_are_taken_away(kind, monkeypatch):
    large = {"HUGEINT": str((1 << 127) - 1), "DECIMAL(38,4)": f"{'9' * 34}.9999"}[kind]
    monkeypatch.setitem(VALUES, kind, [f"'{large}'", "'1'"])
    run = over_table({"s": "sum(v)"}, kind, select={"s": ("VARCHAR", '"r2.s"::VARCHAR')})
    assert run.batch((1, "a", 1, 7))[0][2] == [large]
    assert run.batch((2, "b", 1, 7)) == []
    assert [phase for phase, _, _ in run.letters] == ["result"]
    assert run.batch((3, "a", 2, 7)) == []  # too large by 1
    one = {"HUGEINT": "1", "DECIMAL(38,4)": "1.0000"}[kind]
    assert run.batch((4, "b", -1, 7)) == [("7", 4, [one])]
    assert len(run.letters) == 2


def test_a_result_that_the_next_groups_cannot_take_stays_as_it_was_there():
    """A group and its reader keep the last result alike, and so do other readers of it."""
    run = over_table(ONE, present='CAST("r1.v" AS UTINYINT) > 0')
    assert run.batch((1, "a", 1, 7), (2, "b", 2, 7)) == [("7", 1, [1, 0]), ("7", 2, [2, 1])]
    assert run.batch((3, "b", -1, 7)) == []
    ((phase, message, value),) = run.letters
    assert (phase, value) == ("result", None)
    assert message.startswith("group (k = b): ")
    assert run.batch((4, "b", 0, 7)) == [("7", 4, [1, 0])]
    assert run.batch((5, "b", 3, 7)) == [("7", 5, [2, -7])]


@pytest.mark.parametrize("spread", [False, True], ids=["one task", "several tasks"])
def test_groups_of_groups_of_groups(spread):
    """Each is a table to the next one: how many groups have how many rows, and their greatest."""
    first = aggregate_of(1, True, {"n": "count(*)", "v": "last(v)"})
    second = replace(aggregate_of(2, True, ONE, retracts=True), keys=(Column("k", "BIGINT"),))
    third = aggregate_of(3, False, {"n": "count(*)", "hi": "max(v)"}, retracts=True)
    made = flow(first, second, third)
    two, three = made.operators[3], made.operators[5]
    assert isinstance(two, Project)
    assert isinstance(three, Project)
    columns = ((second.keys[0], '"r1.n"'), *((c, '"r1.v"') for c in second.arguments))
    deep = tuple((c, '"r2.n"') for c in third.arguments)
    new = {two.id: replace(two, columns=columns), three.id: replace(three, columns=deep)}
    run = Running(replace(made, operators=tuple(new.get(o.id, o) for o in made.operators)), spread)
    assert run.batch((1, "a", 5), (2, "b", 6)) == [(1, [1, 1]), (2, [1, 2])]
    assert run.batch((3, "a", 7)) == [(3, [2, 1])]
    assert run.batch((4, "b", 7)) == [(4, [1, 2])]
