"""Accumulators and results of groups: one statement for all of them, and the groups it fails on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import pyarrow as pa

from kaflow_engine.duck.queries import cursor
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.operators import Accumulator, Aggregate
from kaflow_engine.flow.windows import ROW_TIME, WINDOW_END, WINDOW_START, SessionWindow
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.aggregate.inputs import Inputs
from kaflow_engine.operators.aggregate.nodes import Node, Parts, parts_of_nodes
from kaflow_engine.operators.row_errors.quarantine import DATA_ERRORS, error_class, error_text
from kaflow_engine.operators.rows.row_text import columns_of, pack, to_text, unpack
from kaflow_engine.operators.rows.schemas import TAKEN

_ALL = 1 << 62
_ROW = "$row."


@dataclass(frozen=True, slots=True)
class Results:
    """What became of nodes, by their places."""

    columns: dict[int, str] = field(default_factory=dict[int, str])
    """The accumulators as packed rows."""
    rows: dict[int, str] = field(default_factory=dict[int, str])
    """The rows of the result, packed (see `result_columns`)."""
    failed: dict[int, tuple[str, str]] = field(default_factory=dict[int, tuple[str, str]])
    """Class and message of the error, of nodes without a result; without accumulators, too, where
    one of those failed."""

    def add(self, other: "Results") -> None:
        """Take in what became of other nodes."""
        self.columns.update(other.columns)
        self.rows.update(other.rows)
        self.failed.update(other.failed)


def result_columns(aggregate: Aggregate) -> list[Column]:
    """Return the columns of the rows of an aggregate, named `alias.column`."""
    columns = [*aggregate.keys, *(result.column for result in aggregate.results)]
    if aggregate.window is not None:
        columns += [Column(name, "TIMESTAMP") for name in (WINDOW_START, WINDOW_END)]
    if aggregate.timed:
        columns.append(Column(ROW_TIME, "TIMESTAMP"))
    return [Column(f"{aggregate.alias}.{column.name}", column.type) for column in columns]


def times_of(aggregate: Aggregate) -> tuple[str, ...]:
    """Return what stands behind the results in a row of an aggregate, in epoch milliseconds: where
    a window `began` and `ended`, and `ts`."""
    window = ("began", "ended") if aggregate.window is not None else ()
    return (*window, "ts") if aggregate.timed else window


def keeps_rows(aggregate: Aggregate) -> bool:
    """Tell whether the rows of groups are kept."""
    return any(result.keeps for result in aggregate.results)


def calculate(
    aggregate: Aggregate,
    nodes: Sequence[Node],
    wanted: Sequence[int],
    rows: pa.Table,
    kept: Mapping[bytes, Mapping[bytes, str]],
    *,
    results: bool,
) -> Results:
    """Compute accumulators, and results where they are asked for.

    Args:
        aggregate: Which operator.
        nodes: All of the batch so far.
        wanted: The places of those that are computed.
        rows: Schema EXCHANGE, by place.
        kept: Packed rows that are kept of stored nodes, by their entries and tails.
        results: Whether rows of the result are wanted.
    """
    inputs = Inputs(aggregate, nodes, rows, kept)
    if _runs(aggregate, results):
        return _running(inputs, wanted)
    return _each_alone(inputs, wanted, results)


def _broken(node: Node) -> tuple[str, str] | None:
    return None if node.stored is None else node.stored.broken


def _runs(aggregate: Aggregate, results: bool) -> bool:
    """Tell whether nodes follow each other row by row, and no rows are kept."""
    linear = not isinstance(aggregate.window, SessionWindow)
    return results and aggregate.each and linear and not keeps_rows(aggregate)


def _running(inputs: Inputs, wanted: Sequence[int]) -> Results:
    """Compute nodes each of which is the one before it and a row, along the rows."""
    roots: list[int] = []
    for place, node in enumerate(inputs.nodes):
        roots.append(roots[node.parents[0]] if node.parents else place)
    found = Results()
    whole: list[int] = []
    for v in wanted:
        broken = _broken(inputs.nodes[roots[v]])
        if broken is None:
            whole.append(v)
        else:
            found.failed[v] = broken
    if not whole:
        return found
    begun = {roots[v] for v in whole}
    olds = inputs.olds((v, v, v) for v in sorted(begun) if inputs.nodes[v].stored)
    news = inputs.news((v, roots[v], row) for v in whole for row in inputs.nodes[v].rows)
    sql = _statement(inputs.aggregate, True, True)
    try:
        found.add(_run(sql, inputs.infos(whole), olds, news, news))
    except DATA_ERRORS:
        found.add(_each_alone(inputs, whole, True))
    return found


def _each_alone(inputs: Inputs, wanted: Sequence[int], results: bool) -> Results:
    """Compute nodes from all that they are made of."""
    every = parts_of_nodes(inputs.nodes)
    found = Results()
    whole: dict[int, Parts] = {}
    for v in wanted:
        broken = (_broken(inputs.nodes[one]) for one in every[v].stored)
        first = next(filter(None, broken), None)
        if first is None:
            whole[v] = every[v]
        else:
            found.failed[v] = first
    found.add(_all(inputs, whole, results))
    return found


def _all(inputs: Inputs, parts: Mapping[int, Parts], results: bool) -> Results:
    """Compute nodes in one statement; where some fail, the others are computed nevertheless."""
    if not parts:
        return Results()
    keeps = results and keeps_rows(inputs.aggregate)
    olds = inputs.olds((v, v, one) for v, made in parts.items() for one in made.stored)
    news = inputs.news((v, v, row) for v, made in parts.items() for row in made.rows)
    kept = inputs.rows(parts if keeps else {})
    wanted = list(parts)
    sql = _statement(inputs.aggregate, results, False)
    try:
        return _run(sql, inputs.infos(wanted), olds, news, kept)
    except DATA_ERRORS as error:
        if len(wanted) == 1:
            failed = {wanted[0]: (error_class(error), error_text(error))}
            columns = _all(inputs, parts, False).columns if results else {}
            return Results(columns=columns, failed=failed)
    half = len(wanted) // 2
    found = _all(inputs, {v: parts[v] for v in wanted[:half]}, results)
    found.add(_all(inputs, {v: parts[v] for v in wanted[half:]}, results))
    return found


def _run(sql: str, infos: pa.Table, olds: pa.Table, news: pa.Table, kept: pa.Table) -> Results:
    with cursor() as con:  # DuckDB finds the tables by the names of the arguments
        made = con.execute(sql).fetchall()
    rows: list[tuple[int, str, str | None]] = made
    return Results(
        columns={v: columns for v, columns, _ in rows},
        rows={v: row for v, _, row in rows if row is not None},
    )


def computed(
    aggregate: Aggregate, infos: pa.Table, olds: pa.Table, news: pa.Table, *, results: bool
) -> pa.Table:
    """Compute nodes without rows that are kept, all of them in one statement.

    Args:
        aggregate: Which operator.
        infos: As of `Inputs`, in the order of `v`.
        olds: As of `Inputs`.
        news: As of `Inputs`.
        results: Whether rows of the result are wanted.

    Returns:
        `columns` and `row`, packed, in the order of `infos`.

    Raises:
        DATA_ERRORS: Some of them fail.
    """
    sql = f'SELECT "columns", "row" FROM ({_statement(aggregate, results, False)}) ORDER BY v'
    with cursor() as con:  # DuckDB finds the tables by the names of the arguments
        return con.execute(sql).to_arrow_table()


@lru_cache(maxsize=256)
def _statement(aggregate: Aggregate, results: bool, running: bool) -> str:
    """Return SQL of `v`, accumulators and result."""
    joined = ""
    if aggregate.accumulators:
        joined += f" LEFT JOIN ({_merged(aggregate, running)}) m ON m.v = i.v"
    keeping = [result for result in aggregate.results if result.keeps]
    if results and keeping:
        chosen = ", ".join(f"{r.sql} AS {identifier(r.column.name)}" for r in keeping)
        rows = _typed_rows(aggregate, "kept", "v")
        made = f"SELECT v, {chosen} FROM ({rows}) GROUP BY v"
        if aggregate.retracts and not aggregate.keys:  # SQL has a result of no rows, too
            empty = f"SELECT v FROM {_scan('infos')} WHERE v NOT IN (SELECT v FROM {_scan('kept')})"
            nothing = f"SELECT {chosen} FROM ({rows}) WHERE FALSE"
            made += f" UNION ALL SELECT * FROM ({empty}) CROSS JOIN ({nothing})"
        joined += f" LEFT JOIN ({made}) k ON k.v = i.v"
    columns = pack(
        to_text(identifier(a.column.name), a.column.type) for a in aggregate.accumulators
    )
    row = _result(aggregate) if results else "NULL::VARCHAR"
    made = f'{columns} AS "columns", {row} AS "row"'
    return f"SELECT i.v, {made} FROM {_scan('infos')} i{joined}"


def _merged(aggregate: Aggregate, running: bool) -> str:
    accumulators = aggregate.accumulators
    olds = columns_of("l", [a.column for a in accumulators])
    firsts = [f"{_first(a)} AS {identifier(a.column.name)}" for a in accumulators]
    rows = (
        f"SELECT v, g, {', '.join(olds)} FROM (SELECT v, g, {unpack('columns')} AS l "
        f"FROM {_scan('olds')}) UNION ALL SELECT v, g, {', '.join(firsts)} "
        f"FROM ({_typed_rows(aggregate, 'news', 'v, g, kind')})"
    )
    frame = "RANGE" if aggregate.retracts else "ROWS"  # rows of one node count at once
    over = f" OVER (PARTITION BY g ORDER BY v {frame} UNBOUNDED PRECEDING)" if running else ""
    merged = ", ".join(f"{a.merge}{over} AS {identifier(a.column.name)}" for a in accumulators)
    if running:
        return f"SELECT {'DISTINCT' if aggregate.retracts else ''} v, {merged} FROM ({rows})"
    return f"SELECT v, {merged} FROM ({rows}) GROUP BY v"


def _first(accumulator: Accumulator) -> str:
    """Return SQL of what a row is for an accumulator: where it is taken away, what undoes it."""
    if accumulator.taken is None:
        return accumulator.first
    return f"CASE WHEN kind = {TAKEN} THEN {accumulator.taken} ELSE {accumulator.first} END"


def _typed_rows(aggregate: Aggregate, name: str, numbers: str) -> str:
    columns = ", ".join([numbers, *columns_of("l", aggregate.arguments, _ROW)])
    return f"SELECT {columns} FROM (SELECT {numbers}, {unpack('payload')} AS l FROM {_scan(name)})"


def _result(aggregate: Aggregate) -> str:
    texts: list[str] = []
    for result in aggregate.results:
        sql = identifier(result.column.name) if result.keeps else result.sql
        texts.append(to_text(f"({sql})", result.column.type))
    times = times_of(aggregate)
    texts += [f"CAST(make_timestamp({at} * 1000) AS VARCHAR)" for at in times]
    made = f"list_concat({unpack('keys')}, [{', '.join(texts)}]::VARCHAR[])"
    return f"CAST(to_json({made}) AS VARCHAR)"


def _scan(name: str) -> str:
    """Return a table of Python; a filter that DuckDB handed to pyarrow could fail there."""
    return f"(FROM {name} LIMIT {_ALL})"


def unpacked_rows(aggregate: Aggregate, extra: Sequence[str] = ()) -> str:
    """Return a SELECT of `rn` and the typed columns from the table `rows` (rn, row)."""
    chosen = ", ".join(["rn", *extra, *columns_of("l", result_columns(aggregate))])
    return f"SELECT {chosen} FROM (SELECT rn, {unpack('row')} AS l FROM rows)"
