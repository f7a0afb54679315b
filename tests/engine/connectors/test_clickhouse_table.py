"""A ClickHouse table that does not fit is refused at the start, with the statement that helps."""
# pyright: basic

from dataclasses import replace

import pytest

from kaflow_engine.connectors.clickhouse.errors import ClickHouseAway, ClickHouseUnfit
from kaflow_engine.model.columns import Column
from tests.engine.connectors.clickhouse_here import Table
from tests.receiver import Answer, running_receiver

pytestmark = pytest.mark.services

KNOWS = "ENGINE = MergeTree ORDER BY tuple() SETTINGS non_replicated_deduplication_window = 9"
REPLACING = "ENGINE = ReplacingMergeTree(_version, _deleted) ORDER BY k"
MORE = "_version UInt64, _deleted UInt8"
UNFIT = [
    (f"(k String) {KNOWS}", "it has no column 'n'", "ADD COLUMN `n` Nullable(Int32)"),
    (f"(k LowCardinality(Nullable(String)), n Int64, more String) {KNOWS}", None, ""),
    (
        f"(k String, n Int16) {KNOWS}",
        "its column 'n' is Int16, and INTEGER needs Nullable(Int32)",
        "MODIFY COLUMN `n` Nullable(Int32), or cast in the query",
    ),
    (f"(k FixedString(9), n Int32) {KNOWS}", "its column 'k' is FixedString(9)", "MODIFY COLUMN"),
    (f"(k String, n Int32 ALIAS 1) {KNOWS}", "its column 'n' is computed", "do not select it"),
    (
        "(k String, n Int32) ENGINE = MergeTree ORDER BY k",
        "it does not know blocks that come twice",
        "MODIFY SETTING non_replicated_deduplication_window = 1000",
    ),
    (
        "(k String, n Int32) ENGINE = SummingMergeTree ORDER BY k",
        "it is of engine SummingMergeTree, which merges rows",
        "write mode: upsert with a key",
    ),
    ("(k String, n Int32) ENGINE = Memory", "it is of engine Memory", "the table behind it"),
]
UNFIT_CHANGES = [
    (f"(k String, n Nullable(Int32), {MORE}) {REPLACING}", None, ""),
    (
        f"(k String, n Int32, {MORE}) {KNOWS}",
        "its engine is MergeTree, and rows that replace each other, or go, need",
        "ENGINE = ReplacingMergeTree(`_version`, `_deleted`) ORDER BY `k`",
    ),
    (
        f"(k String, n Int32, {MORE}) ENGINE = ReplacingMergeTree(_version) ORDER BY k",
        "its engine is ReplacingMergeTree(_version)",
        "write another table",
    ),
    (
        f"(k String, n Int32, _version UInt32, _deleted UInt8) {REPLACING}",
        "its column '_version' is UInt32, not UInt64",
        "write another table",
    ),
    (
        f"(k String, n Int32, {MORE}) {REPLACING.replace('BY k', 'BY (k, n)')}",
        "it is sorted by k, n, and the key of the rows is 'k'",
        "ORDER BY `k`",
    ),
]
UNFIT_PAIRS = [
    (f"(k String, n Int32, {MORE}) {REPLACING.replace('BY k', 'BY (n, k)')}", None, ""),
    (
        f"(k String, n Int32, {MORE}) {REPLACING}",
        "it is sorted by k, and the key of the rows is 'k', 'n'",
        "ORDER BY (`k`, `n`)",
    ),
]
CASES = [*((*each, {}) for each in UNFIT)]
CASES += [(*each, {"key": "k", "changes": True}) for each in UNFIT_CHANGES]
NAMED = {"key": "k", "changes": True, "version_column": "v", "deleted_column": "is_deleted"}
OF_NAMES = [
    (
        "(k String, n Int32, v UInt64, is_deleted UInt8) "
        "ENGINE = ReplacingMergeTree(v, is_deleted) ORDER BY k",
        None,
        "",
    ),
    (
        "(k String, n Int32, v DateTime64(3), is_deleted UInt8) "
        "ENGINE = ReplacingMergeTree(v, is_deleted) ORDER BY k",
        "its column 'v' is DateTime64(3), not UInt64",
        "ENGINE = ReplacingMergeTree(`v`, `is_deleted`) ORDER BY `k`",
    ),
]
CASES += [(*each, NAMED) for each in OF_NAMES]
OF_PAIRS = {"key": "_key", "key_columns": ("k", "n"), "changes": True}
CASES += [(*each, OF_PAIRS) for each in UNFIT_PAIRS]


@pytest.mark.parametrize(("ddl", "said", "cure", "how"), CASES, ids=[each[0] for each in CASES])
def test_a_table_is_compared_with_the_plan(clickhouse, unique, ddl, said, cure, how):
    clickhouse.ask(f"CREATE TABLE {unique} {ddl}")
    table = Table(clickhouse, unique, **how)
    if said is None:
        table.begin()
        table.write(1, ("a", ["a", "1"]))
        assert table.rows("k, n") == [("a", 1)]
        return
    with pytest.raises(ClickHouseUnfit) as caught:
        table.look()
    assert said in caught.value.message
    assert cure in caught.value.hint


def test_what_is_created_is_what_a_hint_says(clickhouse, unique):
    kinds = (Column("k", "VARCHAR"), Column("a b", 'STRUCT(x INTEGER, "y\'z" DATE[])'))
    table = Table(clickhouse, unique, kinds, key="k", changes=True, create=False)
    with pytest.raises(ClickHouseUnfit, match=f"there is no table '{unique}'") as caught:
        table.begin()
    clickhouse.ask(caught.value.hint.partition("run ")[2])
    assert table.look() == ()
    table.begin()


def test_a_table_in_another_database(clickhouse, unique):
    table = Table(clickhouse, f"{unique}.Order")
    with pytest.raises(ClickHouseUnfit, match=f"there is no database '{unique}'") as caught:
        table.begin()
    clickhouse.ask(caught.value.hint.removeprefix("run "))
    table.begin()
    table.write(1, ("a", ["a", "1"]))
    assert table.rows("k, n") == [("a", 1)]
    of_url = {**table.output.connection, "database": unique}
    settings = {**table.output.settings, "table": "Order"}
    table.output = replace(table.output, connection=of_url, settings=settings)
    assert [each.batch for each in table.look()] == [1]


ANSWERS = [
    (Answer(200, '["18.16.1"]\n'), ClickHouseUnfit, "needs ClickHouse 23.3 or newer, and this is"),
    (Answer(502, "bad gateway"), ClickHouseAway, "looking at the table .* failed: bad gateway"),
    (Answer(404, "<html>"), ClickHouseUnfit, "failed: <html>"),
    (Answer(401), ClickHouseUnfit, "the server answers 401"),
]


@pytest.mark.parametrize(("answer", "kind", "said"), ANSWERS, ids=[str(a[0]) for a in ANSWERS])
def test_a_server_that_is_another_one(clickhouse, answer, kind, said):
    with running_receiver() as receiver:
        receiver.answer = lambda request: answer
        table = Table(clickhouse, "t")
        connection = {**table.output.connection, "url": f"{receiver.url}/"}
        table.output = replace(table.output, connection=connection)
        with pytest.raises(kind, match=said):
            table.look()
