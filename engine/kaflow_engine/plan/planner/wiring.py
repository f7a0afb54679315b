"""The operators of chains by ids: topics, joins, projections and ledgers, and the sinks behind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.errors import ModelError
from kaflow_engine.flow.edges import Driving, Rows
from kaflow_engine.flow.graph import decode_id, inputs_of
from kaflow_engine.flow.numbers import ledger_id, state_in
from kaflow_engine.flow.operators import (
    Decode,
    Gathers,
    KeyedJoin,
    Ledger,
    Operator,
    Project,
    Unnest,
)
from kaflow_engine.flow.sinks import ConnectorSink, Sink, TableSink, TopicSink
from kaflow_engine.flow.tables import Materialize, TableJoin
from kaflow_engine.flow.timed import Throttle
from kaflow_engine.model.columns import Column
from kaflow_engine.model.pipelines.own_settings import as_said_by
from kaflow_engine.model.record_columns import KEY as RECORD_KEY
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.grouping.places import Places
from kaflow_engine.plan.planner.grouping.settings import coalescing, is_group_key
from kaflow_engine.plan.planner.outputs.output import BranchParts, OutputParts
from kaflow_engine.plan.planner.steps import KeyStep
from kaflow_engine.sql.shape import Expr, OutputShape, QueryShape, UnnestShape


def relation_of(spec: PipelineSpec, place: tuple[int, int]) -> str:
    """Return what a projection is called: unique, as no topic or table has a `#` in its name."""
    output, number = place
    name = spec.writes[output].target if len(spec.writes) > 1 else spec.name
    if number < 0:
        return f"{name}.lookup#{-number}"
    return f"{name}#{number}" if number else name


def projection(
    relation: str,
    rows: KeyedJoin | Driving | Rows,
    where: Sequence[Expr],
    columns: tuple[tuple[Column, str], ...],
    unnests: Sequence[UnnestShape],
) -> Project:
    """Return the projection of a relation: over the rows of an operator, or of records at once.

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
        rows=Rows(input=rows.id, key=None) if isinstance(rows, KeyedJoin) else rows,
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
    for each in branches:
        own = as_said_by(spec, each.shape.said_at)
        for i, name in enumerate(() if each.groups else own.emission.require):
            column = each.shape.column(name)
            if column is not None and each.shape.lists_behind(column.expr):
                raise ModelError(
                    f"the required column '{name}' is made of elements of an unnested list, and "
                    "rows wait before they are unnested",
                    own.place("emission", "require", i),
                    "select the list as a column, too, and require that one",
                )


def ledger_after(chain: int, joins: Sequence[KeyedJoin], projects: Sequence[Project]) -> Ledger:
    """Return the ledger of a chain."""
    inputs = (*(join.id for join in joins), *(project.id for project in projects))
    return Ledger(id=ledger_id(chain), state=state_in(chain, len(joins) + 1), inputs=inputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped:
    """One GROUP BY, laid out."""

    depth: int
    """How many stand before it, and itself."""
    entry: Project
    aggregate: Gathers
    delay: int
    """Milliseconds that its rows may be behind the watermark."""
    places: Places | None
    """Where its rows are; None: not where groups could be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainOperators:
    """A chain, laid out."""

    number: int
    steps: Sequence[KeyStep]
    """Its joins by key."""
    joins: tuple[KeyedJoin, ...]
    projects: Mapping[tuple[int, int], Project]
    """What sinks take, by the place of its branch: of its output, and among the branches."""
    ends: Mapping[tuple[int, int], Project]
    """Projections of the joined rows, by the place of the first branch behind them."""
    ledger: Ledger | None
    grouped: tuple[Grouped, ...] = ()
    tables: tuple[Materialize | TableJoin, ...] = ()
    """What makes its rows, where these are rows of a table."""
    looked_up: Mapping[QueryShape, str] = field(default_factory=dict[QueryShape, str])
    """The ids of the aggregates that joins of other chains look up."""


def in_order(
    topics: Sequence[str], chains: Sequence[ChainOperators], throttles: Sequence[Throttle] = ()
) -> tuple[Operator, ...]:
    """Return the operators in topological order, with one that decodes each topic.

    Projections stand in the order of the outputs and their branches: rows of one record leave so.
    """
    ends = {place: each for chain in chains for place, each in chain.ends.items()}
    last = {
        place: each
        for chain in chains
        for place, each in chain.projects.items()
        if each != chain.ends.get(place)
    }
    grouped = [each for chain in chains for each in chain.grouped]
    return _behind_inputs(
        (
            *(Decode(id=decode_id(topic), source=i) for i, topic in enumerate(topics)),
            *(table for chain in chains for table in chain.tables),
            *(join for chain in chains for join in chain.joins),
            *(ends[place] for place in sorted(ends)),
            *(chain.ledger for chain in chains if chain.ledger is not None),
            *(n for each in sorted(grouped, key=lambda each: each.depth) for n in _behind(each)),
            *(last[place] for place in sorted(last)),
            *throttles,
        )
    )


def _behind_inputs(operators: Sequence[Operator]) -> tuple[Operator, ...]:
    """Return operators each behind those whose rows it takes, else in the order that they have."""
    found: dict[str, Operator] = {}
    left = list(operators)
    while left:
        ready = next(each for each in left if all(name in found for name in inputs_of(each)))
        found[ready.id] = ready
        left.remove(ready)
    return tuple(found.values())


def _behind(grouped: Grouped) -> tuple[Operator, ...]:
    """Return what of a GROUP BY does not stand among the projections of joined rows."""
    if grouped.depth == 1:
        return (grouped.aggregate,)
    return (grouped.entry, grouped.aggregate)


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
    ledgers = (
        chain.ledger.id
        for place, chain in writing.items()
        if chain.ledger is not None and chain.projects[place] in chain.ends.values()
    )
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
    in_value = key is None or not key.is_key
    changes = any(branch.is_table for branch in output.branches)
    coalesced = changes and coalescing(spec, output.write) == "batch"
    if (sink := output.write.sink) is not None:
        columns = [column for column, _ in output.branches[0].columns]
        return ConnectorSink(
            id=sink_id(sink.target),
            inputs=inputs,
            exchange=exchange,
            key=name,
            kind=sink.kind,
            target=sink.target,
            settings=tuple(sorted(sink.settings.items())),
            columns=tuple(c for c in columns if in_value or c.name != name),
            key_in_value=in_value,
            changes=changes or sink.replaces,
            coalesced=coalesced,
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
        key_in_value=in_value,
        compacted=changes or output.has_operations,
        passes_key=key is not None and all(map(_passes_key, output.branches)),
        coalesced=coalesced,
    )


def sink_id(target: str) -> str:
    """Return the id of the sink that writes a topic or table."""
    return f"sink:{target}"


def _passes_key(branch: BranchParts) -> bool:
    """Tell whether the key of a row is that of its driving record as it is: `_key AS _key`."""
    key, shape = branch.key, branch.shape
    if key is None or not key.is_key or branch.groups or branch.is_table:
        return False
    return key.expr.sql == identifier(f"{shape.driving.alias}.{RECORD_KEY}")


def _needs_exchange(
    spec: PipelineSpec, output: OutputParts, writing: Mapping[tuple[int, int], ChainOperators]
) -> bool:
    """Rows of one output key must meet at one writer, unless the last join key of one chain brought
    all of them; a ledger decides where its records are.
    """
    if all(_leaves_by_group(branch) for branch in output.branches) and len(writing) == 1:
        return False
    if any(chain.ledger is not None for chain in writing.values()):
        return True
    if not spec.ordered or output.key is None:
        return False
    several = len({chain.number for chain in writing.values()}) > 1
    return several or any(
        not _brought(writing[branch.place].steps, branch.key) for branch in output.branches
    )


def _leaves_by_group(branch: BranchParts) -> bool:
    """Tell whether the rows of one output key are those of a group, or of the key of a table, which
    is in one place."""
    if not branch.groups:
        return branch.is_table
    return branch.key is None or is_group_key(branch.groups[-1].shape, branch.key.expr)


def _brought(steps: Sequence[KeyStep], key: OutputShape | None) -> bool:
    """Tell whether rows are where their last join was, and that has their output key."""
    last = steps[-1].key if steps else ()
    return key is not None and len(last) == 1 and last[0][0] == key.expr.sql
