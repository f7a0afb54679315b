"""Rows of unnested lists: DuckDB's own rows, and lists on which the SQL fails."""

import pyarrow as pa

from kaflow_engine.duck.queries import query
from kaflow_engine.flow.operators import Unnest
from kaflow_engine.operators.output.unnest import unnested
from kaflow_engine.operators.row_errors.probe import suspects_of
from kaflow_engine.operators.row_errors.quarantine import guarded

ROWS = pa.table(
    {
        "rn": [0, 1, 2, 3, 4],
        "a.xs": [[3, 1], [], None, [7], [5, None, 5]],
        "a.ys": [["p"], ["q", "r"], [], None, ["s"]],
    }
)
BESIDE = Unnest(where=None, lists=(("u.x", '"a.xs"'), ("u.y", '"a.ys"')))


def test_lists_side_by_side_are_the_rows_of_duckdb() -> None:
    rows = query(unnested([BESIDE], "SELECT * FROM rows"), rows=ROWS)
    wanted = query('SELECT rn, unnest("a.xs") AS x, unnest("a.ys") AS y FROM rows', rows=ROWS)
    chosen = rows.select(["rn", "u.x", "u.y"])
    assert chosen.rename_columns(["rn", "x", "y"]).to_pylist() == wanted.to_pylist()
    assert rows["$places"].to_pylist() == [[1], [2], [1], [2], [1], [1], [2], [3]]


def test_lists_one_after_the_other_have_a_place_each() -> None:
    letters = Unnest(where='"u.x" > 2', lists=(("v.z", "string_split(\"u.y\" || 'k', 'k')"),))
    rows = query(unnested([BESIDE, letters], "SELECT * FROM rows"), rows=ROWS)
    assert rows.select(["rn", "v.z", "$places"]).to_pylist() == [
        {"rn": 0, "v.z": "p", "$places": [1, 1]},
        {"rn": 0, "v.z": "", "$places": [1, 2]},
        {"rn": 4, "v.z": "s", "$places": [1, 1]},
        {"rn": 4, "v.z": "", "$places": [1, 2]},
    ]


def test_one_query_finds_the_rows_whose_list_or_element_fails() -> None:
    rows = pa.table(
        {
            "rn": list(range(100)),
            "a.xs": [["1", "?", "?"] if i % 10 == 5 else ["3", "4"] for i in range(100)],
            "a.t": ["[oops" if i % 10 == 7 else "[1, 2]" for i in range(100)],
        }
    )
    lists = (("u.x", '"a.xs"'), ("u.y", 'CAST("a.t" AS INTEGER[])'))
    made = unnested([Unnest(where=None, lists=lists)], "SELECT * FROM rows")
    sql = f'SELECT rn, "$places", CAST("u.x" AS INTEGER) + "u.y" AS "o.v" FROM ({made})'
    failing = [i for i in range(100) if i % 10 in (5, 7)]
    assert [suspect.index for suspect in suspects_of(sql, rows)] == failing
    found, bad = guarded(sql, rows)
    assert sorted(each.row for each in bad) == failing
    assert found.num_rows == 160
    assert set(found["rn"].to_pylist()).isdisjoint(failing)
