"""Runs of rows: any SELECT over the next so many rows of a relation, which it reads as `batch`."""

from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from kaflow_engine.duck import binding
from kaflow_engine.duck.functions.catalogue import IN_PLANS, shown
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.errors import Location, SqlError
from kaflow_engine.flow.tables import APPEND_TIME
from kaflow_engine.flow.timed import AT, NUMBER
from kaflow_engine.model.columns import Column
from kaflow_engine.sql.flat import Flat, Group
from kaflow_engine.sql.groups.event_time import TIME
from kaflow_engine.sql.groups.runs.together import together
from kaflow_engine.sql.groups.shapes import RunShape
from kaflow_engine.sql.parse import parse_select
from kaflow_engine.sql.scope import NeedsSchema, Schemas, is_now
from kaflow_engine.sql.streamable import Refusal, line_of, reject_outside, reject_volatile
from kaflow_engine.sql.syntax import at_line
from kaflow_engine.sql.types.bind import Binder, expressions, with_elements
from kaflow_engine.sql.types.groups import group_columns, rows_of_groups, source_columns
from kaflow_engine.sql.types.refusals import refusal

BATCH = "batch"
"""What the SQL calls the rows of a run."""
RUN = "run"
"""What the alias of such rows begins with."""
_META = "run"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunText:
    """What an author says of runs."""

    sql: str
    start: Location
    """Where the SQL begins."""
    size: int
    every: int | None
    """Milliseconds of batch time."""
    per_partition: bool


def reading_runs(below: exp.Select, run: RunText) -> exp.Select:
    """Return a query of all of a relation or topic as one whose rows are those of runs of it."""
    below.meta[_META] = run
    return below


def run_of(select: exp.Select) -> RunText | None:
    """Return what is said of the runs of a query; None of one that has none."""
    found: Any = select.meta.get(_META)
    return found


def rows_of_runs(
    run: RunText, flat: Flat, typed: Flat, readable: Schemas, at: Location | None
) -> dict[str, exp.Expr]:
    """Put rows into runs, and return what the SQL selects of them, by name.

    Args:
        run: What is said of them.
        flat: The rows, with their outputs; the runs are added to it.
        typed: The same rows, whose columns are those of topics.
        readable: The columns of topics that a query may use.
        at: Where the text of the whole query begins.

    Raises:
        SqlError: The SQL cannot run over runs, or the rows replace each other.
        NeedsSchema: Columns of a topic are needed that are not known yet.
    """
    _refuse_changes(flat, run.start)
    check_run(run)
    shape = typed.shape()
    columns = {topic: readable(topic) for each in (*shape.below, shape) for topic in each.topics}
    known = {topic: some for topic, some in columns.items() if some is not None}
    if len(known) < len(columns):
        raise NeedsSchema([topic for topic in columns if topic not in known], run.start)
    rows = with_elements(source_columns(shape, known, at), shape, at)
    groups = rows_of_groups(shape, group_columns(rows, shape, at))
    binder = Binder({**rows, **groups}, at, expressions(shape))
    values = {name: output.expr for name, output in zip(flat.outputs, shape.outputs, strict=True)}
    inputs = tuple(Column(name, binder.type_of(values[name])) for name in flat.values)
    results = results_of(run, inputs)
    group = Group(
        alias=flat.unique(RUN),
        keys={f"$in{n}": tree for n, tree in enumerate(flat.values.values())},
        line=_line(run.start, at),
        run=RunShape(
            size=run.size,
            every=run.every,
            per_partition=run.per_partition,
            sql=run.sql,
            inputs=inputs,
            results=results,
        ),
    )
    flat.groups.append(group)
    flat.record, flat.sets = {TIME: group.column(APPEND_TIME)}, {}
    return {column.name: group.column(column.name) for column in results}


def _line(start: Location, at: Location | None) -> int | None:
    """Return the line on which the SQL begins, counted as those of the whole query."""
    if start.line is None or at is None or at.line is None:
        return None
    return start.line - at.line + 1


def check_run(run: RunText) -> None:
    """Refuse SQL that reads more than the rows of its run, or is not the same when it runs again.

    Raises:
        SqlError: with the way out.
    """
    tree = parse_select(run.sql, run.start)
    own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and table.name.lower() in {BATCH, *own}:
            continue
        if isinstance(table.this, exp.Func):
            continue  # those that reach out are refused below
        raise SqlError(
            f"a run reads the rows that it is made of, called {BATCH}, and no '{table.name}'",
            at_line(run.start, line_of(table)),
            "join in the relation below, whose rows make the runs",
        )
    for found in (
        reject_outside(tree),
        reject_volatile(tree),
        _reject_now(tree),
        _reject_functions(tree),
    ):
        if found is not None:
            raise SqlError(found[1], at_line(run.start, line_of(found[0])), found[2])


def _reject_now(tree: exp.Query) -> Refusal | None:
    for node in tree.find_all(exp.Func):
        if is_now(node):
            text = "the time of now is another one when a run is made again"
            return node, text, "select now() in the relation below; it is a column of its rows then"
    return None


def _reject_functions(tree: exp.Query) -> Refusal | None:
    for node in tree.find_all(exp.Anonymous):
        if IN_PLANS.fullmatch(node.name):
            text = f"a run cannot call the Python function '{shown(node.name)[0]}'"
            hint = "call it in the relation below, or in the query that reads the runs"
            return node, text, hint
    return None


def results_of(run: RunText, inputs: tuple[Column, ...]) -> tuple[Column, ...]:
    """Return the columns that the SQL of runs selects.

    Raises:
        ModelError: DuckDB refuses it.
    """
    columns = ", ".join(f"NULL::{c.type} AS {identifier(c.name)}" for c in inputs)
    rows = f"WITH {BATCH} AS (SELECT {columns})"

    def ask(sql: str) -> str:
        return binding.bind(f"{rows} SELECT {sql} AS x FROM {BATCH}")[0]

    try:
        found = binding.described(_over(inputs, run.sql))
    except binding.Error as error:
        raise refusal(error, "NULL", run.start, ask) from error
    return tuple(Column(name, kind) for name, kind in found)


def over_many(run: RunShape) -> str | None:
    """Return the SQL of runs over many of them; None where DuckDB would make other columns."""
    found = together(run.sql, BATCH)
    if found is None:
        return None
    more = (*run.inputs, Column(NUMBER, "BIGINT"), Column(AT, "BIGINT"))
    wanted = [(column.name, column.type) for column in (*run.results, more[-2])]
    try:
        return found if list(binding.described(_over(more, found))) == wanted else None
    except binding.Error:
        return None


def _over(inputs: tuple[Column, ...], sql: str) -> str:
    columns = ", ".join(f"NULL::{c.type} AS {identifier(c.name)}" for c in inputs)
    return f"WITH {BATCH} AS (SELECT {columns}) SELECT * FROM ({sql}\n)"


def _refuse_changes(flat: Flat, at: Location | None) -> None:
    if flat.changes_rows:
        raise SqlError(
            "runs of rows that change and go: a run takes each row once",
            at,
            "read rows that stay as they are: events, or groups of a window that closes",
        )
