"""Tasks and queries that look up the same values: each row keeps the answer that it got first."""
# pyright: basic

import pyarrow as pa
import pytest

from kaflow_engine.flow.transforms import Transform
from kaflow_engine.operators.transform.contract import TransformBatch
from kaflow_engine.state.kept import KEPT
from kaflow_engine.transforms.lookup.lookup import LookUp
from tests.engine.transforms.lookup_here import Running

pytestmark = pytest.mark.services

QUERY = "SELECT t.k, u.name FROM t LEFT JOIN users u ON t.k = u.id"


class Answers:
    """Answers that tasks see once all have asked, as tasks do that run at the same time."""

    def __init__(self):
        self.seen, self.new = {}, {}

    def kept_rows(self, name):
        return self.seen.get(name, KEPT.empty_table())

    def keep_rows(self, name, rows):
        self.new.setdefault(name, []).append(rows)

    def show(self):
        self.seen = {name: pa.concat_tables(rows) for name, rows in self.new.items()}


def looked_up(postgres, running, answers, rows):
    """Call a look-up as one task does; return the names that were found, by row."""
    (transform,) = [each for each in running.planned.plan.operators if isinstance(each, Transform)]
    given = pa.table(
        {c.name: pa.array([row.get("k") for row in rows], pa.int32()) for c in transform.columns}
    )
    identities = pa.table({"t_off": [row["offset"] for row in rows]})
    batch = TransformBatch(
        batch=1,
        batch_time=0,
        mark="",
        identities=lambda: identities,
        answers=answers,
        connection=lambda kind, name: {"url": postgres.url},
    )
    made = LookUp(transform, transform.params)(given, batch)
    (name,) = [c.name for c in transform.results if c.name.endswith("name")]
    found = zip(made.origin.to_pylist(), made.rows[name].to_pylist(), strict=True)
    return [(rows[at]["offset"], text) for at, text in found]


def test_rows_of_tasks_that_ran_at_the_same_time_keep_their_answers(postgres, crm):
    crm("CREATE TABLE crm.users (id integer, name text)", "INSERT INTO crm.users VALUES (1, 'a')")
    running, answers = Running(postgres.url, QUERY, {"k": "INTEGER"}), Answers()
    one, two = [{"k": 1, "offset": 0}], [{"k": 1, "offset": 1}, {"k": 1, "offset": 2}]
    assert looked_up(postgres, running, answers, one) == [(0, "a")]
    crm("UPDATE crm.users SET name = 'b'")
    assert looked_up(postgres, running, answers, two) == [(1, "b"), (2, "b")]
    answers.show()
    crm("UPDATE crm.users SET name = 'c'")
    again = looked_up(postgres, running, answers, [*one, *two, {"k": 1, "offset": 3}])
    assert again == [(0, "a"), (1, "b"), (2, "b"), (3, "c")]


def test_queries_that_read_other_columns_have_answers_of_their_own(postgres, crm):
    crm(
        "CREATE TABLE crm.users (id integer, name text, mail text)",
        "INSERT INTO crm.users VALUES (1, 'a', 'a@x')",
    )
    query = (
        "SELECT t.k, u.name, v.mail FROM t LEFT JOIN users u ON t.k = u.id "
        "LEFT JOIN users v ON t.k = v.id"
    )
    for refresh in ({}, {"refresh": "1h"}):
        running = Running(postgres.url, query, {"k": "INTEGER"}, about=refresh)
        assert running.rows({"k": 1}) == [{"k": 1, "name": "a", "mail": "a@x"}]


def test_names_with_signs_of_parameters(postgres, crm):
    crm(
        'CREATE TABLE crm."users" ("pct%s" integer, name text)',
        "INSERT INTO crm.users VALUES (1, 'a')",
    )
    query = 'SELECT t.k, u.name FROM t LEFT JOIN users u ON t.k = u."pct%s"'
    rows = Running(postgres.url, query, {"k": "INTEGER"}).rows({"k": 1})
    assert rows == [{"k": 1, "name": "a"}]
