"""Which tables a statement reads, and what of WHERE is left to their database."""
# pyright: basic

import pytest

from kaflow_engine.serving.reads import reads_of

CASES = [
    ("FROM pg.t", [("t", None, [])]),
    ("SELECT a FROM other.t", []),
    ("SELECT a FROM pg.s.t", [("s.t", {"a"}, [])]),
    ("SELECT count(*) FROM pg.t WHERE a = $x", [("t", {"a"}, ["a = $x"])]),
    ("SELECT a FROM pg.t WHERE 1 < b AND c IS NULL", [("t", {"a", "b", "c"}, ["b > 1"])]),
    ("SELECT a FROM pg.t x WHERE x.a > 1 OR x.b = 2", [("t", {"a", "b"}, [])]),
    ("SELECT a FROM pg.t WHERE a = b", [("t", {"a", "b"}, [])]),
    ("SELECT a FROM pg.t WHERE a = random()", [("t", {"a"}, [])]),
    ("SELECT a FROM pg.t WHERE a = (SELECT 1)", [("t", {"a"}, [])]),
    ("SELECT x.a FROM pg.t x JOIN db.u ON x.a = u.a WHERE x.a > 1", [("t", {"a"}, ["a > 1"])]),
    ("SELECT x.a FROM pg.t x JOIN db.u ON x.a = u.a WHERE b > 1", [("t", {"a", "b"}, [])]),
    ("SELECT x.a FROM db.u LEFT JOIN pg.t x ON x.a = u.a WHERE x.a > 1", [("t", {"a"}, [])]),
    ("SELECT x.a FROM pg.t x FULL JOIN db.u ON x.a = u.a WHERE x.a > 1", [("t", {"a"}, [])]),
    ("SELECT a FROM pg.t WHERE a = 1 UNION SELECT a FROM pg.t", [("t", {"a"}, [])]),
    (
        "WITH w AS (SELECT a FROM pg.t WHERE a >= $x) SELECT sum(a) FROM w",
        [("t", {"a"}, ["a >= $x"])],
    ),
    ("SELECT COLUMNS('a') FROM pg.t", [("t", None, [])]),
]


@pytest.mark.parametrize(("sql", "wanted"), CASES)
def test_reads(sql, wanted):
    found = reads_of(sql, {"pg"})
    assert found is not None
    assert [
        (
            read.table,
            read.names and {name for name in read.names if name in "abc"},
            [f"{each.column} {each.operator} {each.value}" for each in read.conditions],
        )
        for read in found
    ] == wanted


def test_a_whole_row_needs_all_columns():
    (read,) = reads_of("SELECT t FROM pg.t", {"pg"}) or ()
    assert read.wholes == {"t"}
