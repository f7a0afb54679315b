"""GROUP BY in a query: what groups are made of, with its types, and when their rows leave."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.errors import Location
from kaflow_engine.flow.operators import Leaves
from kaflow_engine.flow.windows import WINDOW_END, WINDOW_START
from kaflow_engine.model.columns import Column
from kaflow_engine.model.outputs.output_specs import Write
from kaflow_engine.model.pipelines.own_settings import as_said_by, owner_at, owner_of_rows
from kaflow_engine.model.query_settings import AggregationSpec
from kaflow_engine.model.spec import Path
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.grouping.accumulators import follows_order
from kaflow_engine.plan.planner.grouping.own_keys import with_own_key, with_row_key
from kaflow_engine.plan.planner.outputs.listed_keys import with_listed_key
from kaflow_engine.plan.planner.outputs.null_values import passing_null_values
from kaflow_engine.plan.planner.tables.keys import TableKeys, table_keys
from kaflow_engine.plan.planner.tables.upserts import as_changes, refuse_upserts
from kaflow_engine.sql.chain_shapes import groups_of_tables
from kaflow_engine.sql.groups.event_time import TIME
from kaflow_engine.sql.groups.row_times import timed, without_unread
from kaflow_engine.sql.pipeline import pipeline_shapes
from kaflow_engine.sql.scope import Schemas
from kaflow_engine.sql.shape import Expr, GroupShape, QueryShape
from kaflow_engine.sql.syntax import at_line
from kaflow_engine.sql.types.groups import GroupColumns, arguments_of


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupParts:
    """What is known of one GROUP BY."""

    shape: GroupShape
    keys: tuple[tuple[Column, Expr], ...]
    arguments: tuple[tuple[Column, Expr], ...]
    """What its calls read of a row."""
    results: tuple[Column, ...]
    """Of each call."""
    settings: "GroupSettings"

    @property
    def entered(self) -> tuple[tuple[Column, Expr], ...]:
        """What is selected of the rows before it."""
        return (*self.keys, *self.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """When the rows of a GROUP BY leave, and how long its groups last; times in ms."""

    leaves: Leaves
    each: bool
    grace: int
    on_late: Literal["drop", "dead_letter"]
    ttl: int | None
    retain: int | None

    @property
    def is_table(self) -> bool:
        """Whether its rows are those of a table, of which changes leave."""
        return self.leaves in ("changes", "ended")


def group_settings(
    spec: PipelineSpec, write: Write, shape: QueryShape, *, is_looked_up: bool = False
) -> tuple[GroupSettings, ...]:
    """Return the settings of each GROUP BY of a query.

    A window that another GROUP BY takes is final, and gives it one row, unless its own query says
    otherwise. A table that another one takes gives it each of its changes, where the order in which
    rows took their present form counts, and where changes are rows of their own. Groups that are
    looked up show every change: a record sees those before it.
    """
    found: list[GroupSettings] = []
    of_tables = groups_of_tables(shape)
    for number, group in enumerate(shape.groups, 1):
        said = said_of(spec, write, group, "aggregation").aggregation or AggregationSpec()
        later = shape.groups[number:]
        leaves = _leaves(spec, write, group, later)
        appended = bool(later) and later[0].append is not None
        in_order = any(follows_order(each) for each in later)
        of_rows_that_go = group in of_tables or (bool(found) and found[-1].is_table)
        found.append(
            GroupSettings(
                leaves=leaves,
                each=leaves in ("changes", "ended")
                and (is_looked_up or appended or in_order or coalescing(spec, write) == "none"),
                grace=said.grace if group.window else 0,
                on_late=said.on_late if group.window else "drop",
                ttl=None if group.window or group.append or of_rows_that_go else said.ttl,
                retain=said.retain if group.window else None,
            )
        )
    return tuple(found)


def _leaves(
    spec: PipelineSpec, write: Write, group: GroupShape, later: Sequence[GroupShape]
) -> Leaves:
    if group.appends:
        return "first"
    own = owner_of(spec, write, group, "emission")
    said = as_said_by(spec, own)
    others = [owner_of(spec, write, each, "emission") for each in later]
    counts = not later or later[0].append is not None or (own != () and own not in others)
    if group.window is None or (counts and said.emission.opens_windows):
        return "changes"
    return "ended" if counts and said.emission.late_updates else "closed"


def coalescing(spec: PipelineSpec, write: Write) -> Literal["batch", "none"]:
    """Return whether changes of one group in one batch leave as one."""
    if write.output.coalesce is None and write.output.every is not None:
        return "batch"
    return write.output.coalesce or rows_said(spec, write).emission.coalesce


def pace(spec: PipelineSpec, write: Write) -> int | None:
    """Return how long a key that sent a change holds the next one back, in ms; None: not at all.

    What an output says of its changes comes before what `emission` says, which is for topics.
    """
    if write.output.topic is None:
        return None
    if write.output.every is not None:
        return write.output.every
    every = rows_said(spec, write).emission.every
    return None if write.output.coalesce == "none" else every


def rows_said(spec: PipelineSpec, write: Write) -> PipelineSpec:
    """Return what the author wrote as it counts for the changes that an output writes."""
    return as_said_by(spec, owner_of_rows(spec, write, "emission"))


def owner_of(spec: PipelineSpec, write: Write, group: GroupShape, key: str) -> Path:
    """Return who says what counts of a GROUP BY under a key; () is the pipeline."""
    return owner_at(spec, write, place_of(spec, write, group), key)


def said_of(spec: PipelineSpec, write: Write, group: GroupShape, key: str) -> PipelineSpec:
    """Return what the author wrote as it counts for a GROUP BY under a key."""
    return as_said_by(spec, owner_of(spec, write, group, key))


def place_of(spec: PipelineSpec, write: Write, group: GroupShape) -> Location:
    """Return where a GROUP BY stands."""
    start = spec.place(*write.query_at)
    return at_line(start, group.line) or start


def is_table(shape: QueryShape, settings: Sequence[GroupSettings]) -> bool:
    """Tell whether the rows of a query are those of a table, of which changes leave."""
    return settings[-1].is_table if settings else shape.is_table


def keyed_shapes(spec: PipelineSpec, schemas: Schemas) -> tuple[tuple[QueryShape, ...], ...]:
    """Read the queries of the outputs; where nothing else is the key of records, a group is, or the
    key of a table, or that of the driving record.

    Raises:
        ModelError: As `pipeline_shapes`.
        NeedsSchema: As `pipeline_shapes`.
    """
    found, keys = pipeline_shapes(spec, schemas), table_keys(spec, schemas)
    for write, branches in zip(spec.writes, found, strict=True):
        refuse_upserts(spec, write, branches)
    found = tuple(
        tuple(_without_windows(spec, write, shape) for shape in branches)
        for write, branches in zip(spec.writes, found, strict=True)
    )
    return tuple(
        tuple(
            without_unread(_keyed(spec, write, shape, branches, keys, schemas))
            for shape in branches
        )
        for write, branches in zip(spec.writes, found, strict=True)
    )


def _keyed(
    spec: PipelineSpec,
    write: Write,
    shape: QueryShape,
    branches: Sequence[QueryShape],
    keys: TableKeys,
    schemas: Schemas,
) -> QueryShape:
    if shape.is_upsert:
        return as_changes(spec, write, shape, schemas)
    shape = with_listed_key(write, shape)
    if all(each.row_key for each in branches) and not shape.is_table:
        made = with_row_key(spec, write, shape, branches)
    elif len(branches) > 1 and shape.discriminator is None:
        return shape
    else:
        made = with_own_key(write, shape, keys, schemas)
    return made if len(branches) > 1 else passing_null_values(spec, write, made, schemas)


def _without_windows(spec: PipelineSpec, write: Write, shape: QueryShape) -> QueryShape:
    """Return a query in which groups of rows that change have no windows: what names one is a
    grouping value like others. The end of a window is none; where it is read, it stays a window."""
    done: list[GroupShape] = []
    for number, group in enumerate(shape.groups):
        changes = number > 0 and group_settings(spec, write, shape)[number - 1].is_table
        if changes and group.window_of is not None and _is_value(shape, number):
            start = identifier(f"{group.alias}.{WINDOW_START}")
            named = {each.expr.sql: each.name for each in reversed(shape.outputs)}
            at, own = group.window_at, (named.get(start, WINDOW_START), WINDOW_START)
            group = replace(
                group,
                keys=(*group.keys[:at], (WINDOW_START, group.window_of), *group.keys[at:]),
                window=None,
                window_of=None,
                passed_on=False,
                named=(*group.named[:at], own, *group.named[at:-1]),
            )
            if any(name == TIME for _, name in group.keys[at][1].uses):
                done[-1] = timed(done[-1])
            shape = replace(shape, groups=(*done, group, *shape.groups[number + 1 :]))
        done.append(group)
    return shape


def _is_value(shape: QueryShape, number: int) -> bool:
    """Tell whether the window of a group is named by a column, and its end is not read."""
    group, later = shape.groups[number], shape.groups[number + 1 :]
    read = [expr for each in later for expr in (*each.expressions, *each.where)]
    read += [*group.where, *(output.expr for output in shape.outputs)]
    ends = any(use == (group.alias, WINDOW_END) for expr in read for use in expr.uses)
    return not ends


def group_parts(
    shape: QueryShape, settings: Sequence[GroupSettings], columns: Sequence[GroupColumns]
) -> tuple[GroupParts, ...]:
    """Return what is known of each GROUP BY of a query.

    Args:
        shape: The query.
        settings: Of each GROUP BY.
        columns: Of each as many.
    """
    return tuple(
        GroupParts(
            shape=group,
            keys=tuple((c, e) for c, (_, e) in zip(typed.keys, group.keys, strict=True)),
            arguments=tuple((c, arguments_of(group)[c.name]) for c in typed.arguments),
            results=typed.results,
            settings=own,
        )
        for group, own, typed in zip(shape.groups, settings, columns, strict=True)
    )
