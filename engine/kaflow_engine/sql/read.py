"""A query to its shapes: derived tables merged, unions distributed, columns and joins resolved."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from sqlglot import exp

from kaflow_engine.errors import Location, ModelError, SqlError
from kaflow_engine.model.files.yaml_file import raise_all
from kaflow_engine.model.record_columns import KEY
from kaflow_engine.sql.flat import Flat
from kaflow_engine.sql.joins import Condition, is_right, split_condition, turned
from kaflow_engine.sql.scope import (
    NeedsSchema,
    Relation,
    Schemas,
    Scope,
    matched,
    named_by,
    topic_relation,
)
from kaflow_engine.sql.select_list import conjuncts, key_of, resolved
from kaflow_engine.sql.shape import JoinShape, QueryShape
from kaflow_engine.sql.streamable import is_unnest, line_of, refusals, reject_clauses
from kaflow_engine.sql.syntax import at_line
from kaflow_engine.sql.unions import aligned, by_place
from kaflow_engine.sql.unnest import Unnester

UNNAMED = "unnamed_subquery"
"""What DuckDB calls a derived table that has no name."""


Named = Mapping[str, exp.Query]
"""Queries by the names that stand for them, in lower case."""


@dataclass(kw_only=True)
class _Reader:
    schemas: Schemas
    at: Location | None
    relations: Named
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
        raise_all(refusals(query, self.at))
        known = {**outer, **self._ctes(query)}
        driving, joins = turned(query, self.at)
        return [
            self._select(query, driving, joins, flat, relation, known)
            for flat, relation in self._relation(driving, known, taken)
        ]

    def _select(
        self,
        select: exp.Select,
        driving: exp.Expr,
        joins: Sequence[exp.Join],
        below: Flat,
        relation: Relation,
        known: Named,
    ) -> Flat:
        scope = Scope(at=self.at, named=named_by(select))
        scope.add(relation, driving)
        flat = replace(
            below,
            outputs={},
            record=relation.record,
            key=key_of(select.expressions),
            line=line_of(select),
        )
        unnester = Unnester(
            at=self.at,
            unique=flat.unique,
            wrong=self.wrong,
            unnests=flat.unnests,
            where=flat.where,
        )
        for join in joins:
            if is_unnest(join):
                scope.add(unnester.joined(join, scope), join)
            else:
                self._join(join, scope, flat, known)
        if select.args.get("joins") and is_right(select):
            scope.relations[:2] = scope.relations[1::-1]
        where = select.args.get("where")
        if where:
            flat.where.extend(resolved(conjuncts(where.this), scope, self.wrong))
        flat.outputs = unnester.selected(select, scope)
        return flat

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
        raise_all(wrong)
        if unknown:
            raise unknown[0]
        return aligned(found, self.schemas, self.at)

    def _branches(self, query: exp.Query, outer: Named) -> Iterator[tuple[exp.Select, Named]]:
        """Yield the SELECTs of a UNION ALL however it is nested, with what names mean to each."""
        if isinstance(query, exp.Select):
            yield query, outer
            return
        for node, what, cure in reject_clauses(query):
            raise SqlError(what, at_line(self.at, line_of(node)), cure)
        known = {**outer, **self._ctes(query)}
        inner: list[exp.Query] = [query.this]
        if isinstance(query, exp.SetOperation):
            inner.append(query.expression)
        for each in inner:
            yield from self._branches(each, known)

    def _ctes(self, query: exp.Query) -> dict[str, exp.Query]:
        found: dict[str, exp.Query] = {}
        clause: exp.With | None = query.args.get("with_") or query.args.get("with")
        ctes: list[exp.CTE] = clause.expressions if clause else []
        for cte in ctes:
            plain = isinstance(cte.this, exp.Select | exp.SetOperation)
            if not plain or (clause and clause.args.get("recursive")):
                raise SqlError(
                    f"the WITH query '{cte.alias}' is not a plain SELECT",
                    at_line(self.at, line_of(cte)),
                    "write it as SELECT … FROM one topic, or as a pipeline of its own",
                )
            found[cte.alias.lower()] = cte.this
        return found

    def _means(self, name: str, known: Named) -> tuple[exp.Query, Named] | None:
        """Return the query that a name stands for, and the WITH that it sees; None of a topic."""
        if name in known:
            return known[name], {other: query for other, query in known.items() if other != name}
        return (self.relations[name], {}) if name in self.relations else None

    def _relation(
        self, node: exp.Expr, known: Named, taken: Set[str]
    ) -> list[tuple[Flat, Relation]]:
        """Read what stands after FROM or JOIN: one relation, or one for each branch of a union."""
        line = at_line(self.at, line_of(node))
        if isinstance(node, exp.Table) and not isinstance(node.this, exp.Identifier | exp.Dot):
            raise SqlError("a table function cannot be read as a stream", line, "name a topic")
        if isinstance(node, exp.Table):
            topic = ".".join(part.name for part in node.parts)
            found = self._means(topic.lower(), known)
            if found is not None:
                read = self.read(*found, taken)
                return [_derived(flat, node.alias_or_name) for flat in read]
            alias = node.alias or (topic if len(node.parts) == 1 else node.parts[-1].name)
            flat = Flat(aliases=set(taken))
            unique = flat.unique(alias)
            flat.sources.append((unique, topic))
            return [(flat, topic_relation(alias, unique, topic, self.schemas(topic)))]
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select | exp.SetOperation):
            read = self.read(node.this, known, taken)
            return [_derived(flat, node.alias or UNNAMED) for flat in read]
        raise SqlError(
            "only topics and plain derived tables can be read",
            line,
            "write FROM topic or FROM (SELECT … FROM topic) name",
        )

    def _join(self, join: exp.Join, scope: Scope, flat: Flat, known: Named) -> None:
        line = line_of(join)
        (side, relation), *others = self._relation(join.this, known, flat.aliases)
        if others:
            raise SqlError(
                f"'{relation.alias}' is a UNION ALL and is joined itself",
                at_line(self.at, line),
                "put it first after FROM, or write it to a topic, and join that in another "
                "pipeline",
            )
        flat.aliases |= side.aliases
        if side.joins:
            raise SqlError(
                f"the derived table '{relation.alias}' holds a join and is joined itself",
                at_line(self.at, line),
                "join its topics one after the other in the outer query",
            )
        if side.unnests or flat.unnests:
            own = f"the derived table '{relation.alias}' unnests a list and is joined itself"
            raise SqlError(
                own
                if side.unnests
                else f"'{relation.alias}' is joined to rows of an unnested list",
                at_line(self.at, line),
                "join first, and unnest the joined rows; to join by what is in the list, write "
                "the unnested rows to a topic, and join that in another pipeline",
            )
        alias = relation.base
        if relation.outputs is not None and isinstance(join.this, exp.Subquery | exp.Table):
            relation.outputs = {
                name: _guarded(expression, alias) for name, expression in relation.outputs.items()
            }
            relation.record = {
                name: _guarded(expression, alias) for name, expression in relation.record.items()
            }
        before = [source for source, _ in flat.sources]
        using: list[exp.Expr] = join.args.get("using") or []
        pairs: list[Condition] = []
        for column in using:
            outer = scope.resolve(exp.column(column.name))
            inner = relation.column(column.name)
            if inner is None:
                raise SqlError(
                    f"USING ({column.name}): '{relation.alias}' has no such column",
                    at_line(self.at, line),
                    "write ON a.x = b.y where the columns have different names",
                )
            pairs.append(Condition(left=outer, right=inner, line=line))
            scope.merged[column.name.lower()] = outer
        scope.add(relation, join)
        if not using:
            parts = conjuncts(join.args["on"])
            trees = resolved(parts, scope, self.wrong)
            if len(trees) < len(parts):
                return
            for part, tree in zip(parts, trees, strict=True):
                pairs.append(Condition.of(tree, at_line(self.at, line_of(part) or line), line))
        keys = split_condition(pairs, alias, before, at_line(self.at, line))
        kind = "LEFT" if (join.side or "").upper() in {"LEFT", "RIGHT"} else "INNER"
        flat.sources.extend(side.sources)
        flat.filters.update(side.filters)
        flat.filters.setdefault(alias, []).extend(side.where)
        flat.joins.append(JoinShape(alias=alias, kind=kind, keys=keys, line=line))


def _derived(flat: Flat, alias: str) -> tuple[Flat, Relation]:
    record = flat.record
    if flat.key is not None:
        record = {**record, KEY: flat.outputs[flat.key]}
    relation = Relation(
        alias=alias,
        topics=tuple(topic for _, topic in flat.sources),
        outputs=flat.values,
        base=flat.sources[0][0],
        record=record,
    )
    return flat, relation


def read_branches(
    query: exp.Query, schemas: Schemas, at: Location | None, relations: Named
) -> tuple[QueryShape, ...]:
    """Read a query into the shapes of its branches: SELECTs whose rows together are its own.

    A query over a union is one over each of its branches. All have the same columns, with the names
    of the first one and, as far as the columns of topics are known, the same types.

    Args:
        query: The tree.
        schemas: Columns of topics.
        at: Where its text begins.
        relations: What other names mean; their lines are counted from `at`, too.

    Raises:
        SqlError: it cannot run on a stream.
        Problems: several mistakes.
        NeedsSchema: it needs columns of a topic that are not known yet.
    """
    reader = _Reader(schemas=schemas, at=at, relations=relations)
    try:
        found = reader.read(query, {}, frozenset())
    except NeedsSchema:
        raise_all(reader.wrong)
        raise
    except ModelError as error:
        raise_all([*reader.wrong, error])
        raise
    raise_all(reader.wrong)
    return tuple(flat.shape() for flat in found)


def _guarded(expression: exp.Expr, alias: str) -> exp.Expr:
    """A derived column is NULL where its side has no match, even if it is a constant."""
    if isinstance(expression, exp.Column):
        return expression
    return exp.Case().when(matched(alias), expression)
