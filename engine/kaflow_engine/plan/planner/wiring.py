"""The operators of chains by ids: topics, joins, projections and ledgers, and the sinks behind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kaflow_engine.errors import ModelError
from kaflow_engine.flow.graph import decode_id
from kaflow_engine.flow.numbers import ledger_id, state_in
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
from kaflow_engine.plan.planner.output import BranchParts, OutputParts
from kaflow_engine.plan.planner.steps import KeyStep
from kaflow_engine.sql.shape import Expr, OutputShape, UnnestShape


def relation_of(spec: PipelineSpec, place: tuple[int, int]) -> str:
    """Return what a projection is called: unique, as no topic or table has a `#` in its name."""
    output, number = place
    name = spec.writes[output].output.target if len(spec.writes) > 1 else spec.name
    return f"{name}#{number}" if number else name


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


def refuse_unnested(spec: PipelineSpec, branches: Sequence[BranchParts]) -> None:
    """Refuse what is decided by rows before they are unnested.

    Raises:
        ModelError: with the way out.
    """
    if spec.on_dimension_update == "reemit" and any(each.shape.unnests for each in branches):
        raise ModelError(
            "'on_dimension_update: reemit' does not work with unnest",
            spec.place("on_dimension_update"),
            "write the joined rows to a topic, and unnest them in another pipeline",
        )
    for i, name in enumerate(spec.emission.require):
        columns = [(each.shape, column) for each in branches if (column := each.shape.column(name))]
        if any(shape.lists_behind(column.expr) for shape, column in columns):
            raise ModelError(
                f"the required column '{name}' is made of elements of an unnested list, and rows "
                "wait before they are unnested",
                spec.place("emission", "require", i),
                "select the list as a column, too, and require that one",
            )


def ledger_after(chain: int, joins: Sequence[KeyedJoin], projects: Sequence[Project]) -> Ledger:
    """Return the ledger of a chain."""
    inputs = (*(join.id for join in joins), *(project.id for project in projects))
    return Ledger(id=ledger_id(chain), state=state_in(chain, len(joins) + 1), inputs=inputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainOperators:
    """A chain, laid out."""

    number: int
    steps: Sequence[KeyStep]
    """Its joins by key."""
    joins: tuple[KeyedJoin, ...]
    projects: Mapping[tuple[int, int], Project]
    """By the place of their branch: of its output, and among the branches."""
    ledger: Ledger | None


def in_order(topics: Sequence[str], chains: Sequence[ChainOperators]) -> tuple[Operator, ...]:
    """Return the operators in topological order, with one that decodes each topic.

    Projections stand in the order of the outputs and their branches: rows of one record leave so.
    """
    projects = {place: each for chain in chains for place, each in chain.projects.items()}
    return (
        *(Decode(id=decode_id(topic), source=i) for i, topic in enumerate(topics)),
        *(join for chain in chains for join in chain.joins),
        *(projects[place] for place in sorted(projects)),
        *(chain.ledger for chain in chains if chain.ledger is not None),
    )


def sink_of(spec: PipelineSpec, output: OutputParts, chains: Sequence[ChainOperators]) -> Sink:
    """Return what the rows of an output are written to.

    Args:
        spec: What the author wrote.
        output: Which one.
        chains: All of the pipeline.
    """
    writing = {
        branch.place: chain
        for branch in output.branches
        for chain in chains
        if branch.place in chain.projects
    }
    ledgers = (chain.ledger.id for chain in writing.values() if chain.ledger is not None)
    inputs = (
        *(chain.projects[place].id for place, chain in writing.items()),
        *dict.fromkeys(ledgers),
    )
    exchange = _needs_exchange(spec, output, writing)
    key, table = output.key, output.table
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


def _needs_exchange(
    spec: PipelineSpec, output: OutputParts, writing: Mapping[tuple[int, int], ChainOperators]
) -> bool:
    """Rows of one output key must meet at one writer, unless the last join key of one chain brought
    all of them; a ledger decides where its records are.
    """
    if any(chain.ledger is not None for chain in writing.values()):
        return True
    if not spec.ordered or output.key is None:
        return False
    several = len({chain.number for chain in writing.values()}) > 1
    return several or any(
        not _brought(writing[branch.place].steps, branch.key) for branch in output.branches
    )


def _brought(steps: Sequence[KeyStep], key: OutputShape | None) -> bool:
    """Tell whether rows are where their last join was, and that has their output key."""
    last = steps[-1].key if steps else ()
    return key is not None and len(last) == 1 and last[0][0] == key.expr.sql
