"""A SELECT to its shape: derived tables merged, columns resolved, joins read."""

from dataclasses import dataclass, field

from sqlglot import exp

from kaflow_engine.errors import Location, SqlError
from kaflow_engine.sql.joins import Condition, split_condition
from kaflow_engine.sql.parse import at_line, parse_query
from kaflow_engine.sql.scope import Relation, Schemas, Scope, matched, to_expr, topic_relation
from kaflow_engine.sql.shape import Expr, JoinShape, OutputShape, QueryShape, SourceShape
from kaflow_engine.sql.streamable import check_streamable, line_of


@dataclass(kw_only=True)
class _Flat:
    """A SELECT with everything below it merged into it."""

    sources: list[tuple[str, str]]
    filters: dict[str, list[exp.Expr]]
    joins: list[JoinShape]
    where: list[exp.Expr]
    outputs: dict[str, exp.Expr]


@dataclass(kw_only=True)
class _Reader:
    schemas: Schemas
    at: Location | None
    aliases: set[str] = field(default_factory=set[str])

    def read(self, select: exp.Select, outer: dict[str, exp.Select]) -> _Flat:
        check_streamable(select, self.at)
        known = {**outer, **self._ctes(select, outer)}
        driving, joins = _turned(select, self.at)
        scope = Scope(at=self.at)
        flat, relation = self._relation(driving, known)
        scope.add(relation, driving)
        flat = _Flat(
            sources=list(flat.sources),
            filters=dict(flat.filters),
            joins=list(flat.joins),
            where=list(flat.where),
            outputs={},
        )
        for join in joins:
            self._join(join, scope, flat, known)
        if select.args.get("joins") and _is_right(select):
            scope.relations.reverse()
        where = select.args.get("where")
        if where:
            flat.where.extend(scope.resolve(part) for part in _conjuncts(where.this))
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
            if not node.alias:
                raise SqlError("a derived table has no name", line, "write (SELECT …) name")
            return self._derived(node.this, node.alias, known)
        raise SqlError(
            "only topics and plain derived tables can be read",
            line,
            "write FROM topic or FROM (SELECT … FROM topic) name",
        )

    def _derived(
        self, select: exp.Select, alias: str, known: dict[str, exp.Select]
    ) -> tuple[_Flat, Relation]:
        flat = self.read(select, known)
        topics = tuple(topic for _, topic in flat.sources)
        relation = Relation(
            alias=alias, topics=topics, outputs=flat.outputs, base=flat.sources[0][0]
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
                )
            pairs.append(Condition(left=outer, right=inner, line=line))
            scope.merged[column.name.lower()] = outer
        scope.add(relation, join)
        if not using:
            for part in _conjuncts(join.args["on"]):
                resolved = scope.resolve(part)
                pairs.append(Condition.of(resolved, at_line(self.at, line_of(part) or line), line))
        keys = split_condition(pairs, alias, before, at_line(self.at, line))
        kind = "LEFT" if (join.side or "").upper() in {"LEFT", "RIGHT"} else "INNER"
        flat.sources.extend(side.sources)
        flat.filters.update(side.filters)
        flat.filters.setdefault(alias, []).extend(side.where)
        flat.joins.append(JoinShape(alias=alias, kind=kind, keys=keys, line=line))

    def _outputs(self, select: exp.Select, scope: Scope) -> dict[str, exp.Expr]:
        found: dict[str, exp.Expr] = {}
        for projection in select.expressions:
            for name, expression in self._projected(projection, scope).items():
                if name.lower() in {other.lower() for other in found}:
                    raise SqlError(
                        f"two output columns are called '{name}'",
                        at_line(self.at, line_of(projection)),
                        "give one of them another name with AS",
                    )
                found[name] = expression
        return found

    def _projected(self, node: exp.Expr, scope: Scope) -> dict[str, exp.Expr]:
        star = node.this if isinstance(node, exp.Column) else node
        if isinstance(star, exp.Star):
            if star.args.get("replace") or star.args.get("rename"):
                raise SqlError(
                    "* REPLACE and * RENAME cannot run here",
                    at_line(self.at, line_of(node)),
                    "name the columns",
                )
            table = node.table if isinstance(node, exp.Column) else None
            names: list[exp.Expr] = star.args.get("except_") or star.args.get("except") or []
            dropped = {name.name.lower() for name in names}
            found = scope.star(node, table or None)
            return {name: tree for name, tree in found.items() if name.lower() not in dropped}
        name = node.alias_or_name if isinstance(node, exp.Alias | exp.Column) else ""
        if not name:
            raise SqlError(
                f"the output column {node.sql(dialect='duckdb')} has no name",
                at_line(self.at, line_of(node)),
                "give it one with AS",
            )
        body = node.this if isinstance(node, exp.Alias) else node
        return {name: scope.resolve(body)}

    def _unique(self, alias: str) -> str:
        name, number = alias.replace(".", "_"), 2
        while name.lower() in self.aliases:
            name, number = f"{alias.replace('.', '_')}_{number}", number + 1
        self.aliases.add(name.lower())
        return name


def read_query(sql: str, schemas: Schemas, at: Location | None = None) -> QueryShape:
    """Read a SELECT into its shape.

    Raises:
        SqlError: it cannot be parsed or cannot run on a stream.
        NeedsSchema: it needs columns of a topic that are not known yet.
    """
    flat = _Reader(schemas=schemas, at=at).read(parse_query(sql, at), {})
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
            OutputShape(name=name, expr=_frozen(tree)) for name, tree in flat.outputs.items()
        ),
    )


def topics_of(sql: str, at: Location | None = None) -> tuple[str, ...]:
    """Return the topics a query reads, in order of appearance; columns need not be known."""
    tree = parse_query(sql, at)
    ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    names = [
        ".".join(part.name for part in table.parts)
        for table in tree.find_all(exp.Table, bfs=False)
        if isinstance(table.this, exp.Identifier | exp.Dot)
    ]
    return tuple(dict.fromkeys(name for name in names if name.lower() not in ctes))


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


def _is_right(select: exp.Select) -> bool:
    joins: list[exp.Join] = select.args.get("joins") or []
    return len(joins) == 1 and (joins[0].side or "").upper() == "RIGHT"


def _turned(select: exp.Select, at: Location | None) -> tuple[exp.Expr, list[exp.Join]]:
    """Return the driving table and the joins; a RIGHT JOIN of two tables turned round."""
    clause = select.args.get("from_") or select.args.get("from")
    if clause is None:
        raise SqlError("the query has no FROM", at, "read at least one topic")
    joins: list[exp.Join] = select.args.get("joins") or []
    if not _is_right(select):
        return clause.this, joins
    turned = joins[0].copy()
    turned.set("this", clause.this.copy())
    return joins[0].this, [turned]
