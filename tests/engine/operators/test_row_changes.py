"""Changes of a table on their way to its readers: what each of them makes of a row that fails."""

# pyright: basic

import json

import pyarrow as pa
import pytest

from kaflow_engine.flow.chains.chain import chains
from kaflow_engine.flow.graph import projections
from kaflow_engine.flow.operators import Aggregate, Project
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.aggregate.enter_changes import enter_aggregate_changes
from kaflow_engine.operators.handover import Changes
from kaflow_engine.operators.output.changes import run_changes
from kaflow_engine.operators.output.row_letters import change_letters
from kaflow_engine.operators.rows.schemas import DEAD, ORIGIN, READY, TAKEN, TRIGGER
from tests.engine.operators.aggregate.flows import aggregate_of, flow

TABLE = aggregate_of(1, True, {"v": "last(v)", "w": "last(w)"})
GROUPS = aggregate_of(2, True, {"n": "count(*)"}, retracts=True)
COLUMNS = [Column(f"r1.{name}", kind) for name, kind in (("k", "VARCHAR"), ("v", "INTEGER"))]
BAD = 300


def changes_of(*rows):
    """Changes of a table of `k` and `v`, where `v` must fit a UTINYINT."""
    packed = [[None if v is None else json.dumps([k, str(v)]) for v in vs] for k, *vs in rows]

    def placed(found):
        for name in (*TRIGGER, *ORIGIN, "ts", "part"):
            found = found.append_column(name, pa.array([7] * found.num_rows, pa.int64()))
        return found

    return Changes(
        rows=pa.table(
            {
                "rn": pa.array([n + 10 for n in range(len(rows))], pa.int64()),
                "group": pa.array([f"\x01{k}".encode() for k, *_ in rows], pa.binary()),
                "old": pa.array([old for old, _ in packed], pa.string()),
                "new": pa.array([new for _, new in packed], pa.string()),
            }
        ),
        columns=COLUMNS,
        placed=placed,
        stays=False,
    )


CHANGES = {
    "inserted": ([("a", None, 1)], ["a=1"], ["+a1"], []),
    "updated": ([("a", 1, 2)], ["a=2"], ["-a1", "+a2"], []),
    "equal": ([("a", 1, 1)], [], [], []),
    "deleted": ([("a", 1, None)], ["a=None"], ["-a1"], []),
    "several of one row": (
        [("a", 1, 2), ("b", None, 5), ("a", 2, 3)],
        ["a=2", "b=5", "a=3"],
        ["-a1", "+a2", "+b5", "-a2", "+a3"],
        [],
    ),
    "fails": ([("a", 1, BAD)], ["a=None"], ["-a1"], [10]),
    "failed before": ([("a", BAD, 1)], ["a=1"], ["+a1"], []),
    "fails and fails": ([("a", BAD, BAD)], [], [], [10]),
    "fails between": (
        [("a", 1, BAD), ("b", 2, 3), ("a", BAD, 1)],
        ["a=None", "b=3", "a=1"],
        ["-a1", "-b2", "+b3", "+a1"],
        [10],
    ),
    "failed and is deleted": ([("a", BAD, None)], [], [], []),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_row_that_fails_is_no_row_for_a_sink(name):
    rows, sent, _, bad = CHANGES[name]
    tiny = {"v": ("UTINYINT", 'CAST("r1.v" AS UTINYINT)')}
    given = flow(TABLE, select=tiny)
    taken = run_changes(given, projections(given)[-1:], changes_of(*rows))
    keys = [json.loads(key)[0] for key in taken.rows["key"].to_pylist()]
    values = [value and json.loads(value)["v"] for value in taken.rows["value"].to_pylist()]
    assert [f"{k}={v}" for k, v in zip(keys, values, strict=True)] == sent
    assert [(one.row, one.phase) for one in taken.bad] == [(row, "sql") for row in bad]


@pytest.mark.parametrize("name", CHANGES)
def test_a_row_that_fails_is_no_row_for_an_aggregate(name):
    rows, _, entered, bad = CHANGES[name]
    given = flow(TABLE, GROUPS, args=('CAST("r1.v" AS UTINYINT)', "0 + 1"))
    project, aggregate = given.operators[3], given.operators[4]
    assert isinstance(project, Project)
    assert isinstance(aggregate, Aggregate)
    taken = enter_aggregate_changes(given, project, aggregate, changes_of(*rows))
    signs = {TAKEN: "-", READY: "+"}
    found = [
        f"{signs[row['kind']]}{row['value'][1:].decode()}{json.loads(row['payload'])[0]}"
        for row in taken.rows.to_pylist()
    ]
    assert found == entered
    assert [(one.row, one.phase) for one in taken.bad] == [(row, "sql") for row in bad]


def test_dead_letters_of_a_table_name_the_row():
    given = flow(TABLE, select={"v": ("UTINYINT", 'CAST("r1.v" AS UTINYINT)')})
    changes = changes_of(("a", None, 1), ("b", None, BAD))
    taken = run_changes(given, projections(given)[-1:], changes)
    (chain,) = chains(given)
    letters = change_letters(
        given, chain, changes, taken.bad, lambda group: f"row (k = {group[1:].decode()})"
    )
    (letter,) = letters.to_pylist()
    reason = json.loads(letter["payload"])
    assert (letter["kind"], letter["ts"], letter["part"], letter["raw"]) == (DEAD, 7, 7, None)
    assert reason["phase"] == "sql"
    assert reason["message"].startswith("row (k = b): ")
