"""The operators of one query as a chain: its topics, joins, projection and ledger, by ids."""

from collections.abc import Sequence

from kaflow_engine.flow.graph import decode_id
from kaflow_engine.flow.operators import (
    Decode,
    Driving,
    KeyedJoin,
    Ledger,
    Operator,
    Project,
    Rows,
)
from kaflow_engine.flow.sinks import Sink, TableParams, TableSink, TopicSink
from kaflow_engine.model.columns import Column
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.steps import KeyStep
from kaflow_engine.sql.shape import OutputShape

LEDGER = "ledger"


def projection(
    relation: str,
    rows: KeyedJoin | Driving,
    where: str | None,
    columns: tuple[tuple[Column, str], ...],
) -> Project:
    """Return the projection of a relation: over the rows of a join, or of records at once."""
    edge = rows if isinstance(rows, Driving) else Rows(input=rows.id, key=None)
    return Project(id=f"project:{relation}", rows=edge, where=where, columns=columns)


def chained(
    topics: Sequence[str], joins: Sequence[KeyedJoin], project: Project, *, ledger: bool
) -> tuple[Operator, ...]:
    """Return the operators in topological order, with one that decodes each topic."""
    decodes = [Decode(id=decode_id(topic), source=i) for i, topic in enumerate(topics)]
    chain: tuple[Operator, ...] = (*decodes, *joins, project)
    if not ledger:
        return chain
    inputs = (*(join.id for join in joins), project.id)
    return (*chain, Ledger(id=LEDGER, state=len(joins) + 1, inputs=inputs))


def sink_of(
    spec: PipelineSpec,
    steps: Sequence[KeyStep],
    key: OutputShape | None,
    operators: Sequence[Operator],
    table: TableParams | None,
    avro: str | None,
) -> Sink:
    """Return what the rows of a chain of operators are written to.

    Args:
        spec: What the author wrote.
        steps: Joins by key.
        key: The column that is the key.
        operators: The chain.
        table: Where rows go into a table.
        avro: The schema of Avro records.
    """
    ledger = any(isinstance(each, Ledger) for each in operators)
    inputs = tuple(each.id for each in operators if isinstance(each, Project | Ledger))
    exchange = ledger or _needs_exchange(spec, steps, key)
    name = key.name if key else None
    if table is not None:
        return TableSink(
            id=sink_id(table.name), inputs=inputs, exchange=exchange, key=name, table=table
        )
    topic = spec.output.topic
    assert topic is not None
    return TopicSink(
        id=sink_id(topic),
        inputs=inputs,
        exchange=exchange,
        key=name,
        topic=topic,
        format=spec.output.format,
        avro_schema=avro,
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
