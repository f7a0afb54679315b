"""A query to its shapes: derived tables merged, unions distributed, columns and joins resolved."""

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial

from sqlglot import exp

from kaflow_engine.errors import Location, ModelError, SqlError
from kaflow_engine.model.columns import Column
from kaflow_engine.model.files.yaml_file import raise_all
from kaflow_engine.model.record_columns import readable
from kaflow_engine.sql.flat import Flat
from kaflow_engine.sql.full_joins import either_record, where_present
from kaflow_engine.sql.groups.driving import drive_by_rows
from kaflow_engine.sql.groups.event_time import EventTimes, clock_of
from kaflow_engine.sql.groups.refused import wrong_groups
from kaflow_engine.sql.groups.selecting import Selecting, gathers
from kaflow_engine.sql.groups.union_rows import union_rows
from kaflow_engine.sql.groups.windows import ClockOf
from kaflow_engine.sql.joins import (
    check_joinable,
    derived,
    guard,
    read_conditions,
    split_condition,
    turned,
)
from kaflow_engine.sql.scope import (
    NeedsSchema,
    Relation,
    Schemas,
    Scope,
    named_by,
)
from kaflow_engine.sql.select_list import columns_set, conjuncts, resolved
from kaflow_engine.sql.shape import JoinShape
from kaflow_engine.sql.streamable import is_unnest, line_of, refusals, reject_clauses
from kaflow_engine.sql.syntax import at_line
from kaflow_engine.sql.tables.asked import as_asked
from kaflow_engine.sql.tables.dimensions import become_tables
from kaflow_engine.sql.tables.groups import as_table, looked_up
from kaflow_engine.sql.tables.joined import before_join, said_kind
from kaflow_engine.sql.tables.looked_up import as_looked_up
from kaflow_engine.sql.tables.names import Named, Names, topic_of
from kaflow_engine.sql.tables.refused import (
    check_kind,
    wrong_kinds,
)
from kaflow_engine.sql.tables.sources import keep_rows, kept_relation, topic_rows
from kaflow_engine.sql.tables.unions import (
    discriminated,
    refuse_kept_side,
    wrong_kinds_of_branches,
)
from kaflow_engine.sql.transforms.attached import join_attached, refuse_read
from kaflow_engine.sql.unions import aligned, by_place
from kaflow_engine.sql.unnest import Unnester

NO_TIMES = EventTimes()
UNNAMED = "unnamed_subquery"
"""What DuckDB calls a derived table that has no name."""


@dataclass(kw_only=True)
class Reader:
    """Reads a query and everything below it."""

    schemas: Schemas
    at: Location | None
    names: Names
    event_times: EventTimes
    wrong: list[ModelError] = field(default_factory=list[ModelError])
    """Mistakes after which reading could go on."""

    def read(self, query: exp.Query, outer: Named, taken: Set[str]) -> list[Flat]:
        """Read a query into its branches: one, save where there is a UNION ALL in it.

        Args:
            query: The tree.
            outer: The queries of each WITH around it.
            taken: Aliases that sources beside it have, in lower case.
        """
        if not isinstance(query, exp.Select):
            return self._union(query, outer, taken)
        wrong = [*refusals(query, self.at), *wrong_groups(query, self.at)]
        known = self.names.inside(query, outer)
        kind = partial(self.names.kind, known=known)
        raise_all([*wrong, *wrong_kinds(query, kind, self.at)])
        driving, joins, swapped = turned(query, kind, self.at)
        below = self._relation(driving, known, taken)
        rows = [
            self._rows(query, driving, joins, flat, relation, known, swapped=swapped)
            for flat, relation in below
        ]
        sets, line = columns_set(query.expressions), line_of(query)
        if len(rows) > 1 and gathers(query):
            branches, scopes = zip(*rows, strict=True)
            gathered = Flat(sets=sets, line=line, union_of=branches[0])
            union = union_rows(branches, scopes, gathered)
            clocks = partial(union.clock_of, schemas=self.schemas, event_times=self.event_times)
            self._selecting(clocks, union.typed).select(query, union.scope, union.flat)
            return [union.gathered(self.at)]
        for flat, scope in rows:
            flat.sets, flat.line = sets, line
            if gathers(query):
                keep_rows(flat)
            clocks = partial(
                clock_of, rows=flat, schemas=self.schemas, event_times=self.event_times
            )
            self._selecting(clocks, lambda rows: rows).select(query, scope, flat)
        return [flat for flat, _ in rows]

    def _readable(self, topic: str) -> tuple[Column, ...] | None:
        """Return all columns that a query may use of a topic; None: they are not known yet."""
        own = self.schemas(topic)
        return None if own is None else readable(own, self.names.topics(topic).key_type)

    def _selecting(self, clocks: ClockOf, typed: Callable[[Flat], Flat]) -> Selecting:
        return Selecting(
            at=self.at, wrong=self.wrong, readable=self._readable, clock_of=clocks, typed=typed
        )

    def _rows(
        self,
        select: exp.Select,
        driving: exp.Expr,
        joins: Sequence[exp.Join],
        below: Flat,
        relation: Relation,
        known: Named,
        *,
        swapped: bool,
    ) -> tuple[Flat, Scope]:
        """Read what a SELECT joins, unnests and filters."""
        if any(not is_unnest(join) for join in joins):
            below, relation = as_table(below, relation)
        scope = Scope(at=self.at, named=named_by(select))
        scope.add(relation, driving)
        flat = replace(below, outputs={}, record=relation.record)
        unnester = Unnester(at=self.at, wrong=self.wrong, flat=flat)
        for join in joins:
            if is_unnest(join):
                scope.add(unnester.joined(join, scope), join)
            else:
                self._join(join, scope, flat, known, turned=swapped)
        if swapped:
            scope.relations[:2] = scope.relations[1::-1]
        where = select.args.get("where")
        if where:
            flat.conditions.extend(resolved(conjuncts(where.this), scope, self.wrong))
        return flat, scope

    def _union(self, query: exp.Query, outer: Named, taken: Set[str]) -> list[Flat]:
        found: list[Flat] = []
        wrong: list[ModelError] = []
        unknown: list[NeedsSchema] = []
        for number, (branch, known) in enumerate(self._branches(query, outer)):
            try:
                found += self.read(by_place(branch) if number else branch, known, taken)
            except NeedsSchema as notice:
                unknown.append(notice)
            except ModelError as error:
                wrong.append(error)
        raise_all([*wrong, *wrong_kinds_of_branches(found, self.at)])
        if unknown:
            raise unknown[0]
        return discriminated(aligned(found, self._readable, self.at))

    def _branches(self, query: exp.Query, outer: Named) -> Iterator[tuple[exp.Select, Named]]:
        """Yield the SELECTs of a UNION ALL however it is nested, with what names mean to each."""
        if isinstance(query, exp.Select):
            yield query, outer
            return
        for node, what, cure in reject_clauses(query):
            raise SqlError(what, at_line(self.at, line_of(node)), cure)
        known = self.names.inside(query, outer)
        inner: list[exp.Query] = [query.this]
        if isinstance(query, exp.SetOperation):
            inner.append(query.expression)
        for each in inner:
            yield from self._branches(each, known)

    def _relation(
        self, node: exp.Expr, known: Named, taken: Set[str]
    ) -> list[tuple[Flat, Relation]]:
        """Read what stands after FROM or JOIN: one relation, or one for each branch of a union."""
        line = at_line(self.at, line_of(node))
        if isinstance(node, exp.Table) and not isinstance(node.this, exp.Identifier | exp.Dot):
            raise SqlError("a table function cannot be read as a stream", line, "name a topic")
        if isinstance(node, exp.Table):
            name = topic_of(node)
            found = self.names.means(name.lower(), known)
            if found is not None:
                below = self.read(*found, taken)
                return [derived(flat, node.alias_or_name) for flat in below]
            read = self.names.topics(name)
            refuse_read(read.attached, line)
            alias = node.alias or (name if len(node.parts) == 1 else node.parts[-1].name)
            return [topic_rows(read, alias, self.schemas(read.topic), taken)]
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select | exp.SetOperation):
            below = self.read(node.this, known, taken)
            return [derived(flat, node.alias or UNNAMED) for flat in below]
        raise SqlError(
            "only topics and plain derived tables can be read",
            line,
            "write FROM topic or FROM (SELECT … FROM topic) name",
        )

    def _join(
        self, join: exp.Join, scope: Scope, flat: Flat, known: Named, *, turned: bool
    ) -> None:
        line = line_of(join)
        if (attached := self.names.attached(join.this, known)) is not None:
            join_attached(join, attached, scope, flat, self.schemas, self.wrong)
            return
        (side, relation), *others = self._relation(join.this, known, flat.aliases)
        if others:
            raise SqlError(
                f"'{relation.alias}' is a UNION ALL and is joined itself",
                at_line(self.at, line),
                "put it first after FROM, or write it to a topic, and join that in another "
                "pipeline",
            )
        flat.aliases |= side.aliases
        at = at_line(self.at, line)
        if flat.groups:
            drive_by_rows(flat, scope)
        check_joinable(side, relation.alias, flat, at)
        if side.is_upsert:
            relation = kept_relation(side, relation)
        become_tables(join, side, relation, scope, flat, at)
        side, relation = (as_table if flat.is_table else looked_up)(side, relation)
        kind = said_kind(join)
        check_kind(kind, relation.alias, side, flat, at)
        missing = () if flat.is_table else (relation,)
        if kind == "FULL" and not flat.is_table:
            missing = (*scope.relations, relation)
            flat.record = either_record(flat.record, relation, flat.sources[0][0])
        guard(missing)
        conditions = read_conditions(join, relation, scope, flat, self.wrong)
        if conditions is None:
            return
        keys = split_condition(conditions, relation.base, flat, at)
        keys = where_present(keys, frozenset(each.base for each in missing))
        turned = turned and not flat.joins and not side.is_table
        side, several = as_looked_up(side, relation, keys, by_events=not flat.is_table)
        found = JoinShape(
            alias=relation.base, kind=kind, keys=keys, line=line, turned=turned, several=several
        )
        found = replace(found, called=(scope.relations[0] if turned else relation).alias)
        if kind in ("RIGHT", "FULL"):
            refuse_kept_side(flat, relation.alias, at)
        if flat.is_table or kind == "FULL":
            before_join(kind, scope, flat, relation, at)
        flat.add_side(side, relation.base)
        flat.joins.append(as_asked(join, found))
