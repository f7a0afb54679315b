"""Joins to keyed steps: what shares a key, what a row must have to leave, what travels on."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.flow.decodes import decode_id
from kaflow_engine.flow.edges import Driving, Rows, SideParams
from kaflow_engine.flow.numbers import join_id, state_in
from kaflow_engine.flow.operators import KeyedJoin
from kaflow_engine.model.columns import Column
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.operators.rows.layout import key_text
from kaflow_engine.plan.planner.roles import TopicRole, time_to_live
from kaflow_engine.plan.planner.tables.keys import TableKeys, source_key
from kaflow_engine.plan.planner.tables.record_keys import is_record_key
from kaflow_engine.sql.shape import MATCHED, Expr, JoinShape, OutputShape, QueryShape
from kaflow_engine.sql.tables.operations import operation_sql
from kaflow_engine.sql.types.bind import Binder

FOREVER = (1 << 61) + (1 << 60)  # also at the end of a bounded run, which is 1 << 61
"""Milliseconds; longer than any history."""


@dataclass(kw_only=True)
class KeyStep:
    """Joins over one key, before their columns are laid out."""

    key: tuple[tuple[str, str], ...]
    """Expressions of what was read before, and the types they are cast to."""
    outer: tuple[Expr, ...]
    joins: list[tuple[JoinShape, str]] = field(default_factory=list[tuple[JoinShape, str]])
    """Each join, and the SQL text of its side's key."""

    @property
    def aliases(self) -> frozenset[str]:
        """The sides that are joined here."""
        return frozenset(join.alias for join, _ in self.joins)

    @property
    def inner(self) -> bool:
        """Some side must match."""
        return any(join.kind == "INNER" for join, _ in self.joins)


def key_steps(shape: QueryShape, binder: Binder) -> list[KeyStep]:
    """Group joins whose key is the same expressions of what has been read so far."""
    steps: list[KeyStep] = []
    for join in shape.joins:
        pairs = sorted(join.keys, key=lambda pair: pair.outer.sql)
        types = [binder.key_type(pair.outer, pair.inner) for pair in pairs]
        key = tuple((pair.outer.sql, kind) for pair, kind in zip(pairs, types, strict=True))
        side_key = key_text([(p.inner.sql, kind) for p, kind in zip(pairs, types, strict=True)])
        step = next((step for step in steps if step.key == key), None)
        if step is None:
            step = KeyStep(key=key, outer=tuple(pair.outer for pair in pairs))
            steps.append(step)
        step.joins.append((join, side_key))
    return steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Expressions that must not be NULL before a row may leave."""

    driving: tuple[Expr, ...]
    """Of the driving record alone."""
    steps: tuple[tuple[Expr, ...], ...]
    """Of each step's sides."""


def required(spec: PipelineSpec, steps: Sequence[KeyStep], wanted: Iterable[OutputShape]) -> Needs:
    """Sort required expressions by the step whose sides they depend on.

    Raises:
        ModelError: one depends on sides of two steps.
    """
    driving: list[Expr] = []
    per_step: list[list[Expr]] = [[] for _ in steps]
    feeding: set[int] = set()
    for output in wanted:
        expr = output.expr
        at = [n for n, step in enumerate(steps) if step.aliases & expr.aliases]
        if len(at) > 1:
            raise ModelError(
                f"the required column '{output.name}' depends on joins over two keys",
                _required_at(spec, output.name),
                "require a column of each, or split the pipeline in two",
            )
        if at:
            per_step[at[0]].append(expr)
            feeding.add(at[0])
        else:
            driving.append(expr)
    for n in _needed(steps, feeding):
        for expr in steps[n].outer:
            at = _origin(steps[:n], expr)
            if at is None:
                driving.append(expr)
            else:
                per_step[at].append(expr)
    return Needs(driving=tuple(driving), steps=tuple(tuple(exprs) for exprs in per_step))


def _needed(steps: Sequence[KeyStep], feeding: Iterable[int]) -> list[int]:
    """Return the later steps that are INNER, or feed a required column or another such step."""
    needed = set(feeding)
    for n in reversed(range(len(steps))):
        if steps[n].inner or n in needed:
            origins = (_origin(steps[:n], expr) for expr in steps[n].outer)
            needed |= {n, *(at for at in origins if at is not None)}
    return sorted(needed - {0})


def _origin(steps: Sequence[KeyStep], expr: Expr) -> int | None:
    """Return the first of these steps that joins a side which the expression reads."""
    return next((n for n, step in enumerate(steps) if step.aliases & expr.aliases), None)


def present(exprs: Iterable[Expr]) -> str | None:
    """Return the condition that none of the expressions is NULL; None without expressions."""
    parts = dict.fromkeys(f"({expr.sql}) IS NOT NULL" for expr in exprs)
    return " AND ".join(parts) or None


def keyed_joins(
    spec: PipelineSpec,
    shape: QueryShape,
    steps: Sequence[KeyStep],
    needs: Needs,
    finish: Sequence[Expr],
    roles: Sequence[TopicRole],
    types: dict[tuple[str, str], str],
    driving: Driving,
    tables: Mapping[QueryShape, str],
    keys: TableKeys,
) -> tuple[Driving, tuple[KeyedJoin, ...]]:
    """Lay out the columns of each join.

    Args:
        spec: What the author wrote.
        shape: What the query says.
        steps: Joins by key.
        needs: What a row must have.
        finish: Expressions over the finished row.
        roles: The topics, in the order of their indices.
        types: DuckDB type of each (alias, column).
        driving: How driving records become rows, its columns left open.
        tables: The ids of the aggregates and tables of queries that are looked up.
        keys: The columns that are keys of tables.

    Returns:
        The driving edge with the columns that travel, and the joins.
    """
    reads = [
        [*needs.steps[n], *(steps[n + 1].outer if n + 1 < len(steps) else finish)]
        for n in range(len(steps))
    ]
    before = _columns([use for use in sorted(_used(reads)) if use[0] == shape.driving.alias], types)
    columns = tuple(Column(c.name.partition(".")[2], c.type) for c in before)
    driving = replace(driving, columns=columns)
    rows: Driving | Rows = driving
    found: list[KeyedJoin] = []
    for n, step in enumerate(steps):
        later = _used(reads[n + 1 :])
        here = _used(reads[n:])
        known = {column.name for column in before}
        sides = tuple(
            _side(spec, shape, j, key, here, roles, types, tables, keys) for j, key in step.joins
        )
        here_names = {f"{s.alias}.{c.name}" for s in sides for c in s.columns}
        here_names |= {f"{s.alias}.{MATCHED}" for s in sides}
        found.append(
            KeyedJoin(
                id=join_id(driving.chain, n + 1),
                state=state_in(driving.chain, n + 1),
                rows=rows,
                before=before,
                sides=sides,
                require=present(needs.steps[n]),
            )
        )
        if n + 1 < len(steps):
            rows = Rows(input=found[n].id, key=key_text(steps[n + 1].key))
        before = _columns([u for u in sorted(later) if ".".join(u) in known | here_names], types)
    return driving, tuple(found)


def _side(
    spec: PipelineSpec,
    shape: QueryShape,
    join: JoinShape,
    key: str,
    uses: set[tuple[str, str]],
    roles: Sequence[TopicRole],
    types: dict[tuple[str, str], str],
    tables: Mapping[QueryShape, str],
    keys: TableKeys,
) -> SideParams:
    source, kind = shape.source(join.alias), join.kind
    assert kind == "LEFT" or kind == "INNER" or kind == "ANTI", kind
    names = sorted(name for alias, name in uses if alias == join.alias and name != MATCHED)
    columns = tuple(Column(name, types[(join.alias, name)]) for name in names)
    conditions = [expr.sql for expr in source.filter]
    if source.query is not None and source.once:
        return SideParams(
            alias=join.alias,
            input=tables[source.query],
            role="event",
            kind=kind,
            columns=columns,
            key=key,
            filter=_all_of(conditions),
            ttl=time_to_live(source, roles),
            lookup="current",
            keep=FOREVER,
            tombstones=False,
        )
    if source.query is not None:
        return SideParams(
            alias=join.alias,
            input=tables[source.query],
            role="dimension",
            kind=kind,
            columns=columns,
            key=key,
            filter=_all_of(conditions),
            ttl=0,
            lookup="before" if join.asks else spec.lookup,
            keep=FOREVER,
            tombstones=True,
            rows=tuple(
                Column(part.name, types[(join.alias, part.name)])
                for part in source_key(source, keys)
            )
            if join.several
            else None,
        )
    role = next(role for role in roles if role.name == source.topic)
    topic = spec.read_as(source.topic, source.reading)
    keep = FOREVER if topic.history.keep is None else topic.history.keep
    operation = operation_sql(source.alias, topic.operation) if source.table else None
    if operation is not None:  # what does not pass is gone
        conditions.append(f"({operation}) <> 'd'")
    return SideParams(
        alias=join.alias,
        input=decode_id(role.clock(source)),
        role="dimension" if source.table or role.dimension else "event",
        kind=kind,
        columns=columns,
        key=key,
        filter=_all_of(conditions),
        ttl=role.ttl,
        lookup=spec.lookup if source.table else topic.lookup,
        keep=keep,
        tombstones=is_record_key(join, topic),
    )


def _all_of(conditions: Sequence[str]) -> str | None:
    return " AND ".join(f"({sql})" for sql in conditions) or None


def _required_at(spec: PipelineSpec, name: str) -> Location:
    """Return where a column is required: in `require`, or as the output key."""
    for i, given in enumerate(spec.emission.require):
        if given.lower() == name.lower():
            return spec.place("emission", "require", i)
    keyed = (
        write for write in spec.writes if name.lower() in map(str.lower, write.output.key_columns)
    )
    return spec.place(*next(keyed, spec.writes[0]).at, "key")


def _used(groups: Iterable[Sequence[Expr]]) -> set[tuple[str, str]]:
    return {use for exprs in groups for expr in exprs for use in expr.uses}


def _columns(
    uses: Sequence[tuple[str, str]], types: dict[tuple[str, str], str]
) -> tuple[Column, ...]:
    return tuple(
        Column(f"{alias}.{name}", "BOOLEAN" if name == MATCHED else types[(alias, name)])
        for alias, name in uses
    )
