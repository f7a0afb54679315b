"""Pages of tables: which rows they have, what is kept of them, and what follows a change."""
# pyright: basic

import pytest

from kaflow_engine.connectors.pages.page import next_size
from kaflow_engine.errors import SourceUnfit
from kaflow_engine.state.storage.store import Damaged
from tests.engine.connectors.database_here import ClickHouseHere, PostgresHere, opened, read_on

pytestmark = pytest.mark.services


@pytest.fixture(params=["postgres", "clickhouse"])
def database(request):
    found = PostgresHere if request.param == "postgres" else ClickHouseHere
    return found(request.getfixturevalue(request.param))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 6, 7, 100])
def test_all_rows_in_the_order_of_their_keys(database, tmp_path, unique, count):
    database.numbers(unique, reversed(range(count)))
    source = opened(database, database.params(unique), tmp_path)
    assert [row["n"] for row in read_on(source)] == list(range(count))
    assert source.bounded
    assert source.latest() == {0: count}
    again = opened(database, database.params(unique), tmp_path)
    assert again.bounded
    assert again.latest() == {0: count}


def test_a_table_of_clickhouse_may_begin_at_a_key(clickhouse, tmp_path, unique):
    database = ClickHouseHere(clickhouse)
    database.numbers(unique, range(7))
    source = opened(database, database.params(unique, start_at="5", where="n <> 6"), tmp_path)
    assert [row["n"] for row in read_on(source)] == [5]
    wrong = opened(database, database.params(unique, start_at="x"), tmp_path / "wrong")
    with pytest.raises(SourceUnfit, match="'x' as Int64"):
        wrong.latest()


def test_one_page_is_read_ahead(database, tmp_path, unique):
    database.numbers(unique, range(10))
    source = opened(database, database.params(unique), tmp_path)
    assert source.finite
    assert [source.latest(), source.latest(), source.start("latest")] == [{0: 3}] * 3
    source.forget({0: 2}, 0)
    assert source.latest() == {0: 3}
    source.forget({0: 3}, 0)
    assert source.latest() == {0: 6}
    assert not source.bounded
    assert source.start("earliest") == {0: 0}


def test_a_dimension_is_read_whole_before_it_begins(database, tmp_path, unique):
    database.numbers(unique, range(10))
    source = opened(database, database.params(unique), tmp_path, whole=True)
    assert source.start("latest") == {0: 10}
    assert source.bounded


def test_rows_that_change_later_are_read_as_they_were(database, tmp_path, unique):
    database.numbers(unique, range(5))
    params = database.params(unique)
    source = opened(database, params, tmp_path)
    assert source.latest() == {0: 3}
    before = source.read({0: 0}, {0: 3})
    database.change(unique, 1)
    database.put(unique, [-1])
    for each in (source, opened(database, params, tmp_path)):
        assert each.read({0: 0}, {0: 3}) == before  # an open batch runs again
    source.forget({0: 3}, 0)
    assert source.latest() == {0: 5}
    assert b"changed" not in b"".join(source.read({0: 3}, {0: 5})["value"].to_pylist())


def test_rows_behind_the_last_page_come_as_long_as_it_was_not_read(database, tmp_path, unique):
    database.numbers(unique, range(4))
    source = opened(database, database.params(unique), tmp_path)
    source.latest()
    database.put(unique, range(4, 9))
    source.forget({0: 3}, 0)
    assert [row["n"] for row in read_on(source)] == list(range(9))
    database.put(unique, [9])
    assert source.latest() == {0: 9}


def test_pages_that_were_read_are_let_go_of(database, tmp_path, unique):
    database.numbers(unique, range(7))
    params = database.params(unique)
    source = opened(database, params, tmp_path)
    read_on(source)
    assert not (tmp_path / "sources" / "s" / "rows").exists()
    whole = source.read({0: 0}, {0: 7})  # from the table, which has the same rows
    assert whole.num_rows == 7
    database.change(unique, 4)
    source.forget({0: 7}, 0)
    assert source.read({0: 0}, {0: 3}).num_rows == 3
    with pytest.raises(SourceUnfit) as raised:
        source.read({0: 2}, {0: 4})
    said = f"table {unique} of connection c with keys behind 2, up to 5 are not those"
    assert said in str(raised.value)
    assert "a pipeline with a new `id:`" in str(raised.value)


def test_a_page_that_is_damaged(database, tmp_path, unique):
    database.numbers(unique, range(3))
    source = opened(database, database.params(unique), tmp_path)
    source.latest()
    (file,) = (tmp_path / "sources" / "s" / "rows").iterdir()
    data = bytearray(file.read_bytes())
    data[-20] ^= 1
    file.write_bytes(data)
    with pytest.raises(Damaged, match="is damaged"):
        source.read({0: 0}, {0: 3})


def test_a_condition_chooses_rows(database, tmp_path, unique):
    database.numbers(unique, range(20))
    params = database.params(unique, where="n % 2 = 0 OR v = 'v7' -- and no others")
    source = opened(database, params, tmp_path)
    assert [row["n"] for row in read_on(source)] == sorted([7, *range(0, 20, 2)])


def test_a_batch_that_is_newer_than_the_pages(database, tmp_path, unique):
    database.numbers(unique, range(3))
    source = opened(database, database.params(unique), tmp_path)
    source.latest()
    with pytest.raises(SourceUnfit, match="has read rows up to offset 3, and a batch reads up to"):
        source.reads({0: 0}, {0: 4})


def test_no_page_takes_long_nor_is_large():
    sizes = [size := 20_000]
    for _ in range(9):  # of 100 bytes a row, at 400,000 rows a second
        sizes.append(size := next_size(size, size / 400_000, size * 100))
    assert sizes[:3] == [20_000, 80_000, 320_000]
    assert sizes[-1] == 335_544
    assert next_size(20_000, 2.0, 500_000_000) < 1500
