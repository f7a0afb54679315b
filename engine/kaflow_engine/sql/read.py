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
    named_by,
    to_expr,
    topic_relation,
)
from kaflow_engine.sql.select_list import conjuncts, key_of, resolved
from kaflow_engine.sql.shape import (
    Expr,
    JoinShape,
    OutputShape,
    QueryShape,
    SourceShape,
    UnnestShape,
)
from kaflow_engine.sql.streamable import is_unnest, line_of, refusals
from kaflow_engine.sql.syntax import at_line
from kaflow_engine.sql.unnest import Lists, Unnester

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
    unnests: list[Lists] = field(default_factory=list[Lists])
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
        scope = Scope(at=self.at, named=named_by(select))
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
            unnests=list(flat.unnests),
        )
        unnester = Unnester(
            at=self.at,
            unique=self._unique,
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
        unnests=tuple(
            UnnestShape(
                alias=each.alias,
                lists=tuple((name, _frozen(tree)) for name, tree in each.lists.items()),
            )
            for each in flat.unnests
        ),
    )


def _frozen(tree: exp.Expr) -> Expr:
    return to_expr(tree, line_of(tree))


def _guarded(expression: exp.Expr, alias: str) -> exp.Expr:
    """A derived column is NULL where its side has no match, even if it is a constant."""
    if isinstance(expression, exp.Column):
        return expression
    return exp.Case().when(matched(alias), expression)
