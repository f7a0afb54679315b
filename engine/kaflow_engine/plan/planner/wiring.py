"""The operators of one query as a chain: its topics, joins, projection and ledger, by ids."""

from collections.abc import Sequence

from kaflow_engine.errors import ModelError
from kaflow_engine.flow.graph import decode_id
from kaflow_engine.flow.operators import (
    Decode,
    Driving,
    KeyedJoin,
    Ledger,
    Operator,
    Project,
    Rows,
    Unnest,
)
from kaflow_engine.flow.sinks import Sink, TableSink, TopicSink
from kaflow_engine.model.columns import Column
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.output import OutputParts
from kaflow_engine.plan.planner.steps import KeyStep
from kaflow_engine.sql.shape import Expr, OutputShape, UnnestShape

LEDGER = "ledger"


def projection(
    relation: str,
    rows: KeyedJoin | Driving,
    where: Sequence[Expr],
    columns: tuple[tuple[Column, str], ...],
    unnests: Sequence[UnnestShape],
) -> Project:
    """Return the projection of a relation: over the rows of a join, or of records at once.

    Args:
        relation: Its name.
        rows: Where its rows come from.
        where: Conditions that are left; each is asked before the first list that it does not need.
        columns: What is selected, with its SQL.
        unnests: Lists that become rows.
    """
    left = list(where)
    found: list[Unnest] = []
    for number, unnest in enumerate(unnests):
        later = {each.alias for each in unnests[number:]}
        early = [part for part in left if not part.aliases & later]
        left = [part for part in left if part.aliases & later]
        lists = tuple((f"{unnest.alias}.{name}", of.sql) for name, of in unnest.lists)
        found.append(Unnest(where=_all_of(early), lists=lists))
    return Project(
        id=f"project:{relation}",
        rows=rows if isinstance(rows, Driving) else Rows(input=rows.id, key=None),
        where=_all_of(left),
        columns=columns,
        unnests=tuple(found),
    )


def _all_of(parts: Sequence[Expr]) -> str | None:
    return " AND ".join(f"({part.sql})" for part in parts) or None


def refuse_unnested(spec: PipelineSpec, outputs: Sequence[OutputParts]) -> None:
    """Refuse what is decided by rows before they are unnested.

    Raises:
        ModelError: with the way out.
    """
    if spec.on_dimension_update == "reemit" and any(each.shape.unnests for each in outputs):
        raise ModelError(
            "'on_dimension_update: reemit' does not work with unnest",
            spec.place("on_dimension_update"),
            "write the joined rows to a topic, and unnest them in another pipeline",
        )
    for i, name in enumerate(spec.emission.require):
        columns = [(each.shape, column) for each in outputs if (column := each.shape.column(name))]
        if any(shape.lists_behind(column.expr) for shape, column in columns):
            raise ModelError(
                f"the required column '{name}' is made of elements of an unnested list, and rows "
                "wait before they are unnested",
                spec.place("emission", "require", i),
                "select the list as a column, too, and require that one",
            )


def ledger_after(joins: Sequence[KeyedJoin], projects: Sequence[Project]) -> Ledger:
    """Return the ledger of a chain."""
    inputs = (*(join.id for join in joins), *(project.id for project in projects))
    return Ledger(id=LEDGER, state=len(joins) + 1, inputs=inputs)


def chained(
    topics: Sequence[str],
    joins: Sequence[KeyedJoin],
    projects: Sequence[Project],
    ledger: Ledger | None,
) -> tuple[Operator, ...]:
    """Return the operators in topological order, with one that decodes each topic."""
    decodes = [Decode(id=decode_id(topic), source=i) for i, topic in enumerate(topics)]
    return (*decodes, *joins, *projects, *([ledger] if ledger is not None else []))


def sink_of(
    spec: PipelineSpec,
    output: OutputParts,
    steps: Sequence[KeyStep],
    project: Project,
    ledger: Ledger | None,
) -> Sink:
    """Return what the rows of an output are written to.

    Args:
        spec: What the author wrote.
        output: Which one.
        steps: Joins by key.
        project: Makes the rows.
        ledger: Decides about some of them.
    """
    inputs = (project.id, *([ledger.id] if ledger is not None else []))
    key, table = output.key, output.table
    exchange = ledger is not None or _needs_exchange(spec, steps, key)
    name = key.name if key else None
    if table is not None:
        return TableSink(
            id=sink_id(table.name), inputs=inputs, exchange=exchange, key=name, table=table
        )
    topic = output.write.output.topic
    assert topic is not None
    return TopicSink(
        id=sink_id(topic),
        inputs=inputs,
        exchange=exchange,
        key=name,
        topic=topic,
        format=output.write.output.format,
        avro_schema=output.avro,
        key_in_value=key is None or not key.is_key,
    )


def sink_id(target: str) -> str:
    """Return the id of the sink that writes a topic or table."""
    return f"sink:{target}"


def _needs_exchange(spec: PipelineSpec, steps: Sequence[KeyStep], key: OutputShape | None) -> bool:
    """Rows of one output key must meet at one writer, unless the last join key brought them."""
    if not spec.ordered or key is None:
        return False
    return not (steps and len(steps[-1].key) == 1 and steps[-1].key[0][0] == key.expr.sql)
