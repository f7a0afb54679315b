"""The parts of a planned pipeline put together: one chain of joins, and its outputs."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import decode_id
from kaflow_engine.flow.operators import Driving
from kaflow_engine.flow.sources import TopicParams
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.operators.rows.layout import key_text
from kaflow_engine.plan.planner.original_bytes import raw_condition
from kaflow_engine.plan.planner.output import OutputParts
from kaflow_engine.plan.planner.refusals import refuse_chains, refuse_reemit
from kaflow_engine.plan.planner.steps import (
    KeyStep,
    keyed_joins,
    parts_early,
    present,
    required,
)
from kaflow_engine.plan.planner.topics import TopicRole
from kaflow_engine.plan.planner.wiring import (
    chained,
    ledger_after,
    projection,
    refuse_unnested,
    sink_of,
)
from kaflow_engine.sql.bind import Binder
from kaflow_engine.sql.shape import Expr, OutputShape, QueryShape, common_filters, common_key

MAX_DEFAULT_PARTITIONS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainParts:
    """What a plan is put together from."""

    spec: PipelineSpec
    shape: QueryShape
    """Of the first output: its sources and joins are those of all."""
    steps: Sequence[KeyStep]
    roles: tuple[TopicRole, ...]
    types: dict[tuple[str, str], str]
    topics: tuple[TopicParams, ...]
    binder: Binder
    outputs: tuple[OutputParts, ...]


def assemble(parts: ChainParts) -> Flow:
    """Put a flow together.

    Raises:
        ModelError: What the author asks of emission does not fit the joins.
    """
    spec, shape, steps = parts.spec, parts.shape, parts.steps
    alias = shape.driving.alias
    refuse_chains(spec, shape, steps, parts.roles)
    refuse_reemit(spec, len(steps))
    refuse_unnested(spec, parts.outputs)
    shapes = [output.shape for output in parts.outputs]
    before = [part for part in common_filters(shapes) if part.aliases <= {alias}]
    early = {part.sql for part in before}
    after = [
        [part for part in output.shape.where if part.sql not in early] for output in parts.outputs
    ]
    wanted = _wanted(parts)
    needs = required(spec, steps, wanted)
    finishing = [
        (expr, output.binder)
        for output, own in zip(parts.outputs, after, strict=True)
        for expr in (*own, *_lists(output), *(expr for _, expr in output.columns))
    ]
    later = [
        *finishing,
        *((e, parts.binder) for n in needs.steps for e in n),
        *((e, parts.binder) for s in steps[1:] for e in s.outer),
    ]
    raw = raw_condition(spec, alias, _uncertain_keys(parts, wanted), later)
    role = next(role for role in parts.roles if role.driving)
    driving = Driving(
        input=decode_id(role.name),
        alias=alias,
        columns=(),
        filter=" AND ".join(f"({part.sql})" for part in before) or None,
        key=key_text(steps[0].key) if steps else None,
        needs=None if spec.emission.type == "final" else present(needs.driving),
        raw=raw if steps else None,
        ttl=role.ttl,
        emission=spec.emission.type,
        on_expiry=spec.emission.on_expiry,
        reemit=spec.on_dimension_update == "reemit",
    )
    driving, joined = keyed_joins(
        spec,
        shape,
        steps,
        needs,
        [expr for expr, _ in finishing],
        parts.roles,
        parts.types,
        driving,
    )
    filters = [part for own in after for part in own]
    filters += [of for output in parts.outputs for of in _lists(output)]
    early_parting = parts_early(spec, shape, steps, parts.roles, filters, fails=raw == "TRUE")
    projects = [
        projection(
            spec.name if len(parts.outputs) == 1 else output.write.output.target,
            joined[-1] if joined else driving,
            own,
            tuple((column, expr.sql) for column, expr in output.columns),
            output.shape.unnests,
        )
        for output, own in zip(parts.outputs, after, strict=True)
    ]
    ledger = ledger_after(joined, projects) if early_parting else None
    return Flow(
        pipeline=spec.id,
        name=spec.name,
        sources=parts.topics,
        operators=chained([topic.name for topic in parts.topics], joined, projects, ledger),
        sinks=tuple(
            sink_of(spec, output, steps, project, ledger)
            for output, project in zip(parts.outputs, projects, strict=True)
        ),
        partitions=spec.partitions or min(os.cpu_count() or 1, MAX_DEFAULT_PARTITIONS),
        dead_letter_topic=spec.dead_letters.topic or f"{spec.name}.dead_letters",
        delivery=spec.delivery,
        dimensions_first=spec.dimensions_first,
        max_dead_letters=spec.dead_letters.max_count,
        max_dead_rate=spec.dead_letters.max_rate,
    )


def _uncertain_keys(parts: ChainParts, wanted: Sequence[OutputShape]) -> list[Expr]:
    """Return the keys of outputs that may be NULL in a finished row."""
    complete = parts.spec.emission.on_expiry == "drop"
    certain = {column.expr.sql for column in wanted} if complete else set[str]()
    keys = (output.key.expr for output in parts.outputs if output.key is not None)
    return [key for key in keys if key.sql not in certain]


def _lists(output: OutputParts) -> list[Expr]:
    return [of for unnest in output.shape.unnests for _, of in unnest.lists]


def _wanted(parts: ChainParts) -> list[OutputShape]:
    """Return what must not be NULL under smart emission: what is required, and a key of all."""
    spec = parts.spec
    if spec.emission.type != "smart":
        return []
    found = [
        column
        for name in spec.emission.require
        for output in parts.outputs
        if (column := output.shape.column(name))
    ]
    key = common_key([output.key for output in parts.outputs])
    if key is not None:
        found += _filled(parts.outputs[0].shape, key)
    return list({column.expr.sql: column for column in found}.values())


def _filled(shape: QueryShape, key: OutputShape) -> list[OutputShape]:
    """Return a key, or the lists of joined sides of whose elements it is made: rows wait for them.

    A list of the driving record does not change: where it is empty, there is no row.
    """
    lists = shape.lists_behind(key.expr)
    if not lists:
        return [key]
    joined = [of for of in lists if not of.aliases <= {shape.driving.alias}]
    return [OutputShape(name=key.name, expr=of) for of in joined]
