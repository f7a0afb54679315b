"""Transforms as `kaflow explain` shows them."""

from collections.abc import Iterator, Sequence
from typing import assert_never

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.transforms import (
    IN,
    PASSED,
    HandlerParams,
    LookupParams,
    PluginTransformParams,
    ScriptParams,
    TransformParams,
)
from kaflow_engine.model.durations import format_duration
from kaflow_engine.plan.explain.group_part import TransformPart
from kaflow_engine.sql.groups.shapes import TransformShape
from kaflow_engine.sql.shape import GroupShape


def transform_part(transform: TransformShape) -> TransformPart:
    """Return what there is to say of a transform."""
    return TransformPart(
        name=transform.name,
        type=transform.params.type,
        added=tuple(f"{name} {kind}" for name, kind in transform.schema if kind),
        removed=()
        if transform.is_lookup
        else tuple(name for name, kind in transform.schema if kind is None),
        about=_about(transform.params),
        kept=_kept(transform.params),
    )


def _about(params: TransformParams) -> str:
    match params:
        case ScriptParams(text=text, timeout=timeout, memory=memory):
            lines = len(text.strip().splitlines())
            count = f"{lines} lines" if lines > 1 else "one line"
            return (
                f"{params.language}, {count}; a row may take {format_duration(timeout)}, the "
                f"script {memory // 1_000_000} MB"
            )
        case HandlerParams(batch=batch, concurrency=concurrency):
            rows = "a request for each row" if batch is None else f"{batch:,} rows a request"
            return f"asks {params.place}, {rows}; a task has {concurrency} in flight"
        case PluginTransformParams(plugin=plugin, options=options):
            said = "".join(f", {name}: {value}" for name, value in options)
            return f"{plugin}{said}"
        case LookupParams(table=table, on=on):
            some = "" if table.where is None else f" where {' '.join(table.where.split())}"
            again = (
                f", answers are used again for {format_duration(params.refresh)}"
                if params.refresh
                else ""
            )
            return (
                f"{'LEFT' if params.left else 'INNER'} JOIN {table.place}{some} by "
                f"{', '.join(on)}, as it is then: one query for the values of a batch in each task"
                f"{again}"
            )
        case _:
            assert_never(params)


def _kept(params: TransformParams) -> str:
    match params:
        case ScriptParams() | PluginTransformParams():
            return "nothing"
        case HandlerParams() | LookupParams():
            return (
                "each answer, until its batch is committed: a batch that runs again asks only "
                "about rows that have none (at least once), and its outputs are the same"
            )
        case _:
            assert_never(params)


def transform_rows(part: TransformPart, where: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield what there is to say of a transform, line by line."""
    yield part.type, f"{part.name}: {part.about}"
    if part.added:
        yield "  sets", ", ".join(part.added)
    if part.removed:
        yield "  removes", ", ".join(part.removed)
    yield "  kept", part.kept
    for condition in where:
        yield "WHERE", condition
    yield "  leaves", "what becomes of each row, at once"


def names_of_transform(group: GroupShape) -> dict[str, str]:
    """Return what the columns of the rows of a transform are called."""
    assert group.transform is not None
    names = [name for name, _ in group.keys]
    passed = {name: name.removeprefix(PASSED) for name in names if not name.startswith(IN)}
    inputs = [name.removeprefix(IN) for name in names if name.startswith(IN)]
    called = passed | {name: name for name in group.transform.names(inputs)}
    return {identifier(f"{group.alias}.{name}"): text for name, text in called.items()}
