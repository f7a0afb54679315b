"""A join of two tables is right after each record, in whatever order four records come.

Each kind of join is tried with every eighth order; `KAFLOW_RANDOM_CASES=all` asks for all.
"""

# pyright: basic

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from tests.property.executor import How
from tests.property.seeds import ALL
from tests.property.strategies import T0
from tests.property.table_check import difference, interpret, report
from tests.property.tables import COLUMNS, TableFlow
from tests.property.test_tables import at_the_end
from tests.reference.records import Batch, Record

KINDS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
STEP = 1 if ALL else 8
ON = {"key": "x.id = y.id", "foreign": "x.f = y.id", "columns": "x.g = y.g"}
SELECT = "SELECT coalesce(x.id, '-') AS one, x.n, coalesce(y.id, '-') AS other, y.s"


def record(topic: str, key: str, **value: Any) -> Record:
    """Return a record that inserts or updates, without a value one that deletes."""
    row = {"id": key, **value} if value else None
    return Record(topic=topic, offset=-1, ts=T0, key=key, value=row)


OF_TWO = (
    record("a", "1", f="1", g=1, n=1),
    record("b", "1", g=1, s="x"),
    record("a", "1", f="2", g=1, n=2),
    record("b", "1"),
)
OF_ONE = (
    record("a", "1", f="1", g=1, n=1, s="x"),
    record("a", "2", f="1", g=1, n=2, s="y"),
    record("a", "1", f="2", g=2, n=1, s="z"),
    record("a", "2"),
)


def flow_of(kind: str, on: str, own: bool, records: tuple[Record, ...], cut: bool) -> TableFlow:
    """Return a join of `a` with `b`, or with itself, each record in a batch of its own or not."""
    other = "a" if own else "b"
    placed = tuple(
        replace(each, ts=T0 + n * 1000, offset=sum(r.topic == each.topic for r in records[:n]))
        for n, each in enumerate(records)
    )
    end = T0 + len(records) * 1000
    batches = tuple(Batch(time=each.ts, records=(each,)) for each in placed)
    return TableFlow(
        author={
            "name": "orders",
            "relations": {},
            "outputs": [
                {
                    "query": f"{SELECT} FROM a AS x {kind} {other} AS y ON {ON[on]}",
                    "topic": "joined",
                    "coalesce": "none",
                }
            ],
            "topics": {
                name: {"columns": dict(COLUMNS), "table": True, "primary_key": ["id"]}
                for name in sorted({"a", other})
            },
            "partitions": 2,
        },
        batches=batches if cut else (Batch(time=end, records=placed),),
    )


CASES = [
    pytest.param(
        kind, on, own, id=f"{kind} {on}{' itself' if own else ''}",
        marks=() if (kind, on, own) == ("FULL JOIN", "foreign", False) else pytest.mark.slow,
    )
    for kind in KINDS for on in ON for own in (False, True)
]  # fmt: skip


@pytest.mark.parametrize(("kind", "on", "own"), CASES)
def test_orders_of_four_records(kind: str, on: str, own: bool) -> None:
    first = (KINDS.index(kind) + [*ON].index(on) + own) % STEP
    for place, records in enumerate([*permutations(OF_ONE if own else OF_TWO)][first::STEP]):
        flow = flow_of(kind, on, own, records, cut=place % 2 == 0)
        found = difference(flow, How())
        assert found is None, report(flow, How(), found or "")


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "on", "own"), [case.values for case in CASES[::5]])
def test_the_oracle_is_right_after_each_record(kind: Any, on: Any, own: Any) -> None:
    given = OF_ONE if own else OF_TWO
    for count in range(1, len(given) + 1):
        for records in permutations(given, count):
            flow = flow_of(kind, on, own, records, cut=True)
            last = {row.key: row.value for result in interpret(flow) for row in result.rows}
            got = [value for value in last.values() if value is not None]
            (output,) = flow.author["outputs"]
            want = at_the_end(flow, output)
            assert sorted(map(str, got)) == sorted(map(str, want)), (kind, on, records)
