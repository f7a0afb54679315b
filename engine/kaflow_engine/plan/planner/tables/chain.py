"""The tables of a chain: a topic's rows by key, joins of tables, and joined rows by their key."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kaflow_engine.errors import Location
from kaflow_engine.flow.decodes import decode_id
from kaflow_engine.flow.edges import Driving, Rows
from kaflow_engine.flow.numbers import table_state
from kaflow_engine.flow.tables import Materialize, TableJoin, TableSide
from kaflow_engine.model.columns import Column
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.operators.rows.layout import key_text
from kaflow_engine.plan.planner.tables.keys import (
    Key,
    TableKeys,
    joined_key,
    refuse_alike,
    source_key,
)
from kaflow_engine.plan.planner.tables.record_keys import from_record_key, keys_of_changes
from kaflow_engine.sql.pipeline import key_type
from kaflow_engine.sql.shape import MATCHED, Expr, JoinShape, QueryShape, SourceShape
from kaflow_engine.sql.syntax import DIALECT, at_line
from kaflow_engine.sql.tables.operations import change_of, operation_sql
from kaflow_engine.sql.types.bind import Binder


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """A table, as far as it is made."""

    id: str
    columns: tuple[Column, ...]
    key: Key
    filter: str | None = None
    """What of its rows is joined."""
    is_of_other_chain: bool = False


@dataclass(kw_only=True)
class Tables:
    """Makes the tables of one chain."""

    spec: PipelineSpec
    chain: int
    shape: QueryShape
    binder: Binder
    types: dict[tuple[str, str], str]
    """Of the columns of its topics, by alias."""
    keys: TableKeys
    each: bool
    """Every change leaves."""
    at: Location
    """Where the query begins."""
    groups: Mapping[QueryShape, str]
    """The ids of the aggregates whose groups are joined."""
    clocks: Mapping[str, Callable[[SourceShape], str]]
    """By topic: names the clock by which it is read."""

    def __post_init__(self) -> None:
        """Begin without any."""
        self.found: list[Materialize | TableJoin] = []

    def make(self, read: Sequence[Expr]) -> Rows:
        """Make the tables, each behind those whose changes it takes.

        Args:
            read: What is read of their rows.

        Returns:
            Where the rows of the query come from.
        """
        pairs = [pair for join in self.shape.joins for pair in join.keys]
        every = [*read, *(pair.outer for pair in pairs), *(pair.inner for pair in pairs)]
        uses = {use for expr in every for use in expr.uses if use[1] != MATCHED}
        first, *others = self.shape.sources
        made = self._source(first, uses)
        for source, join in zip(others, self.shape.joins, strict=True):
            made = self._joined(join, made, self._source(source, uses))
        return Rows(input=made.id, key=None)

    def _source(self, source: SourceShape, uses: set[tuple[str, str]]) -> _Made:
        if source.query is not None:
            return self._groups(source, source.query, uses)
        said, alias = self.spec.read_as(source.topic, source.reading), source.alias
        key = source_key(source, self.keys)
        edge = self._edge(source, uses)
        typed = [(Column(part.name, self.types[alias, part.name]), part.sql) for part in key]
        columns, kind = [column for column, _ in typed], key_type(said)
        deletes = from_record_key(alias, columns, kind)
        if source.key and [(said.key or name).lower() for name in source.key] != [
            name.lower() for name in source.key
        ]:
            deletes = None  # the key of a record is another one than that of the join
        operation = operation_sql(alias, said.operation)
        if source.changes and said.operation is not None:  # a record without a value is a row, too
            changes = keys_of_changes(alias, columns, kind)
            typed = [(column, changes[sql][1].sql) for column, sql in typed]
            deletes, operation = None, change_of(alias, said.operation).sql(dialect=DIALECT)
        table = Materialize(
            id=self._id(f"table:{alias}"),
            state=self._state(),
            rows=edge,
            columns=tuple(Column(f"{alias}.{c.name}", c.type) for c in edge.columns),
            keys=tuple(typed),
            deletes=deletes,
            operation=operation,
            each=self.each,
            retain=said.retain,
        )
        self.found.append(table)
        return _Made(id=table.id, columns=table.columns, key=key)

    def _groups(self, source: SourceShape, query: QueryShape, uses: set[tuple[str, str]]) -> _Made:
        """Return the groups of an aggregated query, which another chain makes."""
        key = source_key(source, self.keys)
        alias = source.alias
        kept = sorted({n for other, n in uses if other == alias}.union(p.name for p in key))
        return _Made(
            id=self.groups[query],
            columns=tuple(Column(f"{alias}.{n}", self.types[alias, n]) for n in kept),
            key=key,
            filter=" AND ".join(f"({part.sql})" for part in source.filter) or None,
            is_of_other_chain=True,
        )

    def _edge(self, source: SourceShape, uses: set[tuple[str, str]]) -> Driving:
        alias, key = source.alias, self.keys(source)
        kept = sorted({name for other, name in uses if other == alias}.union(key or ()))
        return Driving(
            input=decode_id(self.clocks[source.topic](source)),
            alias=alias,
            columns=tuple(Column(name, self.types[alias, name]) for name in kept),
            filter=" AND ".join(f"({part.sql})" for part in source.filter) or None,
            key=None,
            needs=None,
            raw=None,
            ttl=0,
            emission="immediate",
            on_expiry="drop",
            reemit=False,
            chain=self.chain,
        )

    def _joined(self, join: JoinShape, left: _Made, right: _Made) -> _Made:
        pairs = sorted(join.keys, key=lambda pair: pair.outer.sql)
        kinds = [self.binder.key_type(pair.outer, pair.inner) for pair in pairs]
        which, key = joined_key(join, left.key, right.key)
        refuse_alike(join, which, left.key, right.key, at_line(self.at, join.line) or self.at)
        number = sum(isinstance(each, TableJoin) for each in self.found) + 1
        joined = TableJoin(
            id=self._id(f"joined:{number}"),
            state=self._state(),
            left=TableSide(
                input=left.id,
                columns=left.columns,
                key=key_text([(p.outer.sql, k) for p, k in zip(pairs, kinds, strict=True)]),
                preserved=join.kind in ("LEFT", "FULL"),
                filter=left.filter,
            ),
            right=TableSide(
                input=right.id,
                columns=right.columns,
                key=key_text([(p.inner.sql, k) for p, k in zip(pairs, kinds, strict=True)]),
                preserved=join.kind in ("RIGHT", "FULL"),
                filter=right.filter,
            ),
            key=which,
            each=self.each,
            chain=self.chain if left.is_of_other_chain else None,
        )
        self.found.append(joined)
        made = _Made(id=joined.id, columns=(*left.columns, *right.columns), key=key)
        return made if which == "join" else self._rekeyed(number, made)

    def _rekeyed(self, number: int, made: _Made) -> _Made:
        types = {column.name: column.type for column in made.columns}
        table = Materialize(
            id=self._id(f"rekeyed:{number}"),
            state=self._state(),
            rows=Rows(input=made.id, key=None),
            columns=made.columns,
            keys=tuple(
                (Column(f"{p.alias}.{p.name}", types[f"{p.alias}.{p.name}"]), p.sql)
                for p in made.key
            ),
            deletes=None,
            operation=None,
            each=self.each,
            retain=None,
        )
        self.found.append(table)
        return _Made(id=table.id, columns=made.columns, key=made.key)

    def _id(self, name: str) -> str:
        return f"{name}#{self.chain}" if self.chain else name

    def _state(self) -> int:
        return table_state(self.chain, len(self.found) + 1)
