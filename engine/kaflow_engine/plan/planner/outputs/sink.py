"""The sink of an output: where its rows go, and whether they travel to it by their key."""

from collections.abc import Mapping, Sequence

from kaflow_engine.connectors.sinks import sink_kind
from kaflow_engine.flow.sinks import OPERATION, ConnectorSink, Sink, TableSink, TopicSink
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.grouping.group_keys import is_group_key
from kaflow_engine.plan.planner.grouping.settings import coalescing
from kaflow_engine.plan.planner.outputs.keys import key_format, passes_key
from kaflow_engine.plan.planner.outputs.listed_keys import key_columns
from kaflow_engine.plan.planner.outputs.output import BranchParts, OutputParts
from kaflow_engine.plan.planner.steps import KeyStep
from kaflow_engine.plan.planner.wiring import ChainOperators
from kaflow_engine.sql.shape import OutputShape


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
        if chain.ledger is not None and chain.projects[place].id in chain.ledger.inputs
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
    in_value = key is None or key.role == "value"
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
            columns=tuple(
                c for c in columns if c.name != OPERATION and (in_value or c.name != name)
            ),
            key_in_value=in_value,
            changes=changes or output.has_operations or sink.replaces,
            coalesced=coalesced,
            key_columns=_listed_key(output),
        )
    topic = output.write.output.topic
    assert topic is not None
    return TopicSink(
        id=sink_id(output.write.target),
        inputs=inputs,
        exchange=exchange,
        key=name,
        topic=topic,
        format=output.write.output.format,
        avro_schema=output.avro,
        key_in_value=in_value,
        compacted=changes or output.has_operations,
        passes_key=passes_key(output),
        key_format=key_format(spec, output),
        key_schema=output.key_avro,
        coalesced=coalesced,
        headers=headers.name if (headers := output.headers) else None,
        operation=output.write.output.operation_header,
        cluster=output.write.output.cluster or "",
    )


def _listed_key(output: OutputParts) -> tuple[str, ...]:
    """Return the columns that are the key together; none: one column is."""
    columns = key_columns(output.write, output.branches[0].shape)
    return tuple(column.name for column in columns) if len(columns) > 1 else ()


def sink_id(target: str) -> str:
    """Return the id of the sink that writes a target."""
    return f"sink:{target}"


def _needs_exchange(
    spec: PipelineSpec, output: OutputParts, writing: Mapping[tuple[int, int], ChainOperators]
) -> bool:
    """Rows of one output key must meet at one writer, unless the last join key of one chain brought
    all of them; a ledger decides where its records are.
    """
    apart = len(writing) == 1 or all(branch.shape.discriminator for branch in output.branches)
    if apart and all(_leaves_by_group(branch) for branch in output.branches):
        return False
    if any(chain.ledger is not None for chain in writing.values()):
        return True
    if not spec.ordered or output.key is None or not _keeps_order(spec, output):
        return False
    several = len({chain.number for chain in writing.values()}) > 1
    return several or any(
        not _brought(writing[branch.place].steps, branch.key) for branch in output.branches
    )


def _keeps_order(spec: PipelineSpec, output: OutputParts) -> bool:
    """Tell whether the order of rows matters where they go."""
    sink = output.write.sink
    return sink is None or sink_kind(sink.kind).capabilities(spec.delivery, sink.settings).ordered


def _leaves_by_group(branch: BranchParts) -> bool:
    """Tell whether the rows of one output key are those of a group, or of the key of a table, which
    is in one place."""
    if not branch.groups:
        return branch.is_table
    if branch.groups[-1].shape.transform is not None:
        return branch.key is None
    form = branch.write.output.key_format
    return branch.key is None or is_group_key(branch.shape, branch.key_parts, form)


def _brought(steps: Sequence[KeyStep], key: OutputShape | None) -> bool:
    """Tell whether rows are where their last join was, and that has their output key."""
    last = steps[-1].key if steps else ()
    return key is not None and len(last) == 1 and last[0][0] == key.expr.sql
