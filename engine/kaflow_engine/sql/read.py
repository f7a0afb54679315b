"""A SELECT to its shape: derived tables merged, columns resolved, joins read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from kaflow_engine.errors import Location, ModelError, SqlError
from kaflow_engine.model.files.yaml_file import raise_all
from kaflow_engine.model.record_columns import KEY
from kaflow_engine.sql.joins import Condition, is_right, split_condition, turned
from kaflow_engine.sql.parse import parse_query
from kaflow_engine.sql.scope import (
    NeedsSchema,
    Relation,
    Schemas,
    Scope,
    matched,
    to_expr,
    topic_relation,
)
from kaflow_engine.sql.select_list import key_of, projected
from kaflow_engine.sql.shape import Expr, JoinShape, OutputShape, QueryShape, SourceShape
from kaflow_engine.sql.streamable import line_of, refusals
from kaflow_engine.sql.syntax import at_line

UNNAMED = "unnamed_subquery"
"""What DuckDB calls a derived table that has no name."""


@dataclass(kw_only=True)
class _Flat:
    """A SELECT with everything below it merged into it."""

    sources: list[tuple[str, str]]
    filters: dict[str, list[exp.Expr]]
    joins: list[JoinShape]
    where: list[exp.Expr]
    outputs: dict[str, exp.Expr]
    record: dict[str, exp.Expr] = field(default_factory=dict[str, exp.Expr])
    """Record columns of its rows: those of the driving record, and a key of its own."""
    key: str | None = None
    """The output that gives its rows another key: `AS _key`."""


@dataclass(kw_only=True)
class _Reader:
    schemas: Schemas
    at: Location | None
    aliases: set[str] = field(default_factory=set[str])
    wrong: list[ModelError] = field(default_factory=list[ModelError])
    """Mistakes after which reading could go on."""

    def read(self, select: exp.Select, outer: dict[str, exp.Select]) -> _Flat:
        raise_all(refusals(select, self.at))
        known = {**outer, **self._ctes(select, outer)}
        driving, joins = turned(select, self.at)
        names = [part.alias.lower() for part in select.expressions if part.alias]
        scope = Scope(at=self.at, named=frozenset(names))
        flat, relation = self._relation(driving, known)
        scope.add(relation, driving)
        flat = _Flat(
            sources=list(flat.sources),
            filters=dict(flat.filters),
            joins=list(flat.joins),
            where=list(flat.where),
            outputs={},
            record=relation.record,
            key=key_of(select.expressions),
        )
        for join in joins:
            self._join(join, scope, flat, known)
        if select.args.get("joins") and is_right(select):
            scope.relations.reverse()
        where = select.args.get("where")
        if where:
            flat.where.extend(self._resolved(_conjuncts(where.this), scope))
        flat.outputs = self._outputs(select, scope)
        return flat

    def _ctes(self, select: exp.Select, outer: dict[str, exp.Select]) -> dict[str, exp.Select]:
        found: dict[str, exp.Select] = {}
        clause: exp.With | None = select.args.get("with_") or select.args.get("with")
        ctes: list[exp.CTE] = clause.expressions if clause else []
        for cte in ctes:
            if not isinstance(cte.this, exp.Select) or (clause and clause.args.get("recursive")):
                raise SqlError(
                    f"the WITH query '{cte.alias}' is not a plain SELECT",
                    at_line(self.at, line_of(cte)),
                    "write it as SELECT … FROM one topic, or as a pipeline of its own",
                )
            found[cte.alias.lower()] = cte.this
        return found

    def _relation(self, node: exp.Expr, known: dict[str, exp.Select]) -> tuple[_Flat, Relation]:
        line = at_line(self.at, line_of(node))
        if isinstance(node, exp.Table) and not isinstance(node.this, exp.Identifier | exp.Dot):
            raise SqlError("a table function cannot be read as a stream", line, "name a topic")
        if isinstance(node, exp.Table):
            topic = ".".join(part.name for part in node.parts)
            if topic.lower() in known:
                inner = {name: cte for name, cte in known.items() if name != topic.lower()}
                return self._derived(known[topic.lower()], node.alias_or_name, inner)
            alias = node.alias or (topic if len(node.parts) == 1 else node.parts[-1].name)
            unique = self._unique(alias)
            relation = topic_relation(alias, unique, topic, self.schemas(topic))
            return _Flat(
                sources=[(unique, topic)], filters={}, joins=[], where=[], outputs={}
            ), relation
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select):
            return self._derived(node.this, node.alias or UNNAMED, known)
        raise SqlError(
            "only topics and plain derived tables can be read",
            line,
            "write FROM topic or FROM (SELECT … FROM topic) name",
        )

    def _derived(
        self, select: exp.Select, alias: str, known: dict[str, exp.Select]
    ) -> tuple[_Flat, Relation]:
        flat = self.read(select, known)
        columns, record = flat.outputs, flat.record
        if flat.key is not None:
            columns = {name: tree for name, tree in columns.items() if name != flat.key}
            record = {**record, KEY: flat.outputs[flat.key]}
        relation = Relation(
            alias=alias,
            topics=tuple(topic for _, topic in flat.sources),
            outputs=columns,
            base=flat.sources[0][0],
            record=record,
        )
        return flat, relation

    def _join(
        self, join: exp.Join, scope: Scope, flat: _Flat, known: dict[str, exp.Select]
    ) -> None:
        line = line_of(join)
        side, relation = self._relation(join.this, known)
        if side.joins:
            raise SqlError(
                f"the derived table '{relation.alias}' holds a join and is joined itself",
                at_line(self.at, line),
                "join its topics one after the other in the outer query",
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
            parts = _conjuncts(join.args["on"])
            resolved = self._resolved(parts, scope)
            if len(resolved) < len(parts):
                return
            for part, tree in zip(parts, resolved, strict=True):
                pairs.append(Condition.of(tree, at_line(self.at, line_of(part) or line), line))
        keys = split_condition(pairs, alias, before, at_line(self.at, line))
        kind = "LEFT" if (join.side or "").upper() in {"LEFT", "RIGHT"} else "INNER"
        flat.sources.extend(side.sources)
        flat.filters.update(side.filters)
        flat.filters.setdefault(alias, []).extend(side.where)
        flat.joins.append(JoinShape(alias=alias, kind=kind, keys=keys, line=line))

    def _outputs(self, select: exp.Select, scope: Scope) -> dict[str, exp.Expr]:
        found: dict[str, exp.Expr] = {}
        for projection in select.expressions:
            try:
                columns = projected(projection, scope)
            except NeedsSchema:
                raise
            except ModelError as error:
                self.wrong.append(error)
                columns = {projection.alias_or_name: exp.null()}
            for name, expression in columns.items():
                if name.lower() in {other.lower() for other in found}:
                    raise SqlError(
                        f"two output columns are called '{name}'",
                        at_line(self.at, line_of(projection)),
                        "give one of them another name with AS",
                    )
                found[name] = expression
        return found

    def _resolved(self, parts: list[exp.Expr], scope: Scope) -> list[exp.Expr]:
        """Resolve conditions; those that are wrong are left out and noted."""
        found: list[exp.Expr] = []
        for part in parts:
            try:
                found.append(scope.resolve(part))
            except NeedsSchema:
                raise
            except ModelError as error:
                self.wrong.append(error)
        return found

    def _unique(self, alias: str) -> str:
        name, number = alias.replace(".", "_"), 2
        while name.lower() in self.aliases:
            name, number = f"{alias.replace('.', '_')}_{number}", number + 1
        self.aliases.add(name.lower())
        return name


def read_query(sql: str, schemas: Schemas, at: Location | None = None) -> QueryShape:
    """Parse a SELECT and read it into its shape; raises as `read_select`."""
    return read_select(parse_query(sql, at), schemas, at, {})


def read_select(
    query: exp.Select,
    schemas: Schemas,
    at: Location | None,
    relations: Mapping[str, exp.Select],
) -> QueryShape:
    """Read a SELECT into its shape.

    Args:
        query: The tree.
        schemas: Columns of topics.
        at: Where its text begins.
        relations: What other names mean, in lower case; their lines are counted from `at`, too.

    Raises:
        SqlError: it cannot run on a stream.
        Problems: several mistakes.
        NeedsSchema: it needs columns of a topic that are not known yet.
    """
    reader = _Reader(schemas=schemas, at=at)
    try:
        flat = reader.read(query, dict(relations))
    except NeedsSchema:
        raise_all(reader.wrong)
        raise
    except ModelError as error:
        raise_all([*reader.wrong, error])
        raise
    raise_all(reader.wrong)
    filters = {
        alias: tuple(_frozen(part) for part in parts) for alias, parts in flat.filters.items()
    }
    return QueryShape(
        sources=tuple(
            SourceShape(alias=alias, topic=topic, filter=filters.get(alias, ()))
            for alias, topic in flat.sources
        ),
        joins=tuple(flat.joins),
        where=tuple(_frozen(part) for part in flat.where),
        outputs=tuple(
            OutputShape(name=name, expr=_frozen(tree), is_key=name == flat.key)
            for name, tree in flat.outputs.items()
        ),
    )


def _frozen(tree: exp.Expr) -> Expr:
    return to_expr(tree, line_of(tree))


def _conjuncts(tree: exp.Expr) -> list[exp.Expr]:
    inner = tree.unnest()
    if isinstance(inner, exp.And):
        return [*_conjuncts(inner.left), *_conjuncts(inner.right)]
    return [inner]


def _guarded(expression: exp.Expr, alias: str) -> exp.Expr:
    """A derived column is NULL where its side has no match, even if it is a constant."""
    if isinstance(expression, exp.Column):
        return expression
    return exp.Case().when(matched(alias), expression)
