"""What may be joined, and join conditions to key pairs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from kaflow_engine.errors import Location, ModelError, SqlError
from kaflow_engine.sql.flat import Flat
from kaflow_engine.sql.scope import Relation, Scope, matched, to_expr
from kaflow_engine.sql.select_list import conjuncts, resolved
from kaflow_engine.sql.shape import Expr, KeyPair
from kaflow_engine.sql.streamable import is_unnest, line_of
from kaflow_engine.sql.syntax import at_line
from kaflow_engine.sql.tables.asked import asked_by, check_value, hide
from kaflow_engine.sql.tables.joined import merge_columns, present, said_kind
from kaflow_engine.sql.tables.kinds import ORDER, Kind, beside

_WAY_OUT = (
    "join on equalities such as a.x = b.y, joined by AND; "
    "put other conditions into WHERE or a derived table"
)


_LISTS = (
    "join first, and unnest the joined rows; to join by what is in the list, write the unnested "
    "rows to a topic, and join that in another pipeline"
)


@dataclass(frozen=True, kw_only=True)
class Condition:
    """One equality of a join, its columns resolved."""

    left: exp.Expr
    right: exp.Expr
    line: int | None

    @classmethod
    def of(cls, tree: exp.Expr, at: Location | None, line: int | None) -> "Condition":
        """Read one conjunct of ON.

        Raises:
            SqlError: it is not an equality.
        """
        if not isinstance(tree, exp.EQ):
            raise SqlError("the join condition is not an equality", at, _WAY_OUT)
        return cls(left=tree.left, right=tree.right, line=line)


def read_conditions(
    join: exp.Join, relation: Relation, scope: Scope, flat: Flat, wrong: list[ModelError]
) -> list[Condition] | None:
    """Read the equalities of ON or USING; None where a mistake in them is noted.

    Args:
        join: As it was written.
        relation: The joined side, which comes into scope.
        scope: What is read so far; columns of USING are merged in it.
        flat: The same rows.
        wrong: Where mistakes are noted after which reading can go on.

    Raises:
        ModelError: One is no equality, or USING names a column that is not there.
    """
    line = line_of(join)
    using: list[exp.Expr] = join.args.get("using") or []
    shared: dict[str, tuple[exp.Expr, exp.Expr]] = {}
    for column in using:
        outer = scope.resolve(exp.column(column.name))
        inner = relation.column(column.name)
        if inner is None:
            raise SqlError(
                f"USING ({column.name}): '{relation.alias}' has no such column",
                at_line(scope.at, line),
                "write ON a.x = b.y where the columns have different names",
            )
        shared[column.name.lower()] = (outer, inner)
    merge_columns(said_kind(join), scope, flat, relation, shared)
    if asked_by(join) is not None:
        hide(relation)
    scope.add(relation, join)
    if shared:
        return [Condition(left=left, right=right, line=line) for left, right in shared.values()]
    parts = conjuncts(join.args["on"])
    trees = resolved(parts, scope, wrong)
    if len(trees) < len(parts):
        return None
    if not flat.is_table:
        check_value(join, trees, at_line(scope.at, line))
    return [
        Condition.of(tree, at_line(scope.at, line_of(part) or line), line)
        for part, tree in zip(parts, trees, strict=True)
    ]


def split_condition(
    conditions: Sequence[Condition], alias: str, before: Flat, at: Location | None
) -> tuple[KeyPair, ...]:
    """Sort the sides of each equality into what was read before and the joined side.

    Raises:
        SqlError: an equality that does not have one side each.
    """
    return tuple(_pair(condition, alias, before, at) for condition in conditions)


def _pair(condition: Condition, alias: str, flat: Flat, at: Location | None) -> KeyPair:
    before = frozenset(source for source, _ in flat.sources)
    left = to_expr(condition.left, condition.line)
    right = to_expr(condition.right, condition.line)
    if (left.aliases | right.aliases) & {lists.alias for lists in flat.unnests}:
        raise SqlError(f"'{alias}' is joined by elements of an unnested list", at, _LISTS)
    for outer, inner in ((left, right), (right, left)):
        if _is_side(inner, frozenset({alias})) and _is_side(outer, before):
            if len(outer.aliases) > 1 and not flat.is_table:
                raise SqlError("a join condition over three tables cannot run here", at, _WAY_OUT)
            return KeyPair(outer=outer, inner=inner)
    if len(left.aliases | right.aliases) > 2:
        raise SqlError("a join condition over three tables cannot run here", at, _WAY_OUT)
    raise SqlError(
        f"the join condition does not compare '{alias}' with a table read before it", at, _WAY_OUT
    )


def _is_side(expr: Expr, aliases: frozenset[str]) -> bool:
    return bool(expr.aliases) and expr.aliases <= aliases


def turned(
    select: exp.Select, kind: Callable[[exp.Expr], Kind], at: Location | None
) -> tuple[exp.Expr, list[exp.Join], bool]:
    """Return what drives a SELECT, its joins, and whether the first two sources changed places.

    They do where the second one drives: it is preserved by a RIGHT JOIN, or of events that are
    joined to a table or to changes of rows, or of such changes that are joined to a table. Where
    both are tables, none drives.

    Args:
        select: As it was written.
        kind: Of what stands after FROM or JOIN.
        at: Where the SQL text begins.
    """
    clause = select.args.get("from_") or select.args.get("from")
    if clause is None:
        raise SqlError("the query has no FROM", at, "read at least one topic")
    joins: list[exp.Join] = select.args.get("joins") or []
    if not joins or is_unnest(joins[0]):
        return clause.this, joins, False
    side = (joins[0].side or "").upper()
    kinds = beside(kind(clause.this), kind(joins[0].this))
    first, second = map(ORDER.index, kinds)
    looks_up = second < first and side in {"", "RIGHT"}
    preserved = side == "RIGHT" and second == first and kinds[1] != "table"
    if not looks_up and not preserved:
        return clause.this, joins, False
    other = joins[0].copy()
    other.set("this", clause.this.copy())
    other.set("side", "LEFT" if side == "RIGHT" else None)
    return joins[0].this, [other, *joins[1:]], True


def check_joinable(side: Flat, alias: str, before: Flat, at: Location | None) -> None:
    """Refuse sides that cannot be joined.

    Args:
        side: What is joined.
        alias: What the author calls it.
        before: What it is joined to.
        at: Where the join stands.

    Raises:
        SqlError: One of them holds what must come behind joins.
    """
    transform = side.groups[-1].transform if side.groups else None
    if transform is not None:
        raise SqlError(
            f"'{alias}', which is joined, has rows of the transform '{transform.name}'",
            at,
            "join first, and transform the joined rows; or write what it makes to a topic, and "
            "join that in another pipeline",
        )
    if before.groups:
        raise SqlError(
            f"'{alias}' is joined to groups whose rows leave once: they make no rows of a join",
            at,
            "join first, and group the joined rows; or write the groups to a topic, and join that "
            "in another pipeline",
        )
    if side.groups and side.groups[-1].run is not None:
        raise SqlError(
            f"'{alias}' has rows of runs, which leave once and cannot be looked up",
            at,
            "join below the runs; or write their rows to a topic, and join that in another "
            "pipeline",
        )
    if side.joins and not side.groups:
        raise SqlError(
            f"the derived table '{alias}' holds a join and is joined itself",
            at,
            "join its topics one after the other in the outer query",
        )
    if (side.unnests and not side.groups) or (before.unnests and before.is_table):
        raise SqlError(
            f"the derived table '{alias}' unnests a list and is joined itself"
            if side.unnests and not side.groups
            else f"'{alias}' is joined to rows of an unnested list of a table",
            at,
            _LISTS,
        )


def derived(flat: Flat, alias: str) -> tuple[Flat, Relation]:
    """Return a query that stands after FROM or JOIN with the relation that it is there."""
    own = {column: flat.outputs[name] for column, name in flat.sets.items()}
    relation = Relation(
        alias=alias,
        topics=tuple(topic for _, topic in flat.sources),
        outputs=flat.values,
        base=flat.sources[0][0],
        record={**flat.record, **own},
        present=present(flat),
    )
    return flat, relation


def guard(sides: Sequence[Relation]) -> None:
    """Let derived columns of joined sides be NULL without a match, even if they are constant."""
    for side in sides:
        side.outputs = side.outputs and _guarded(side.outputs, side.base)
        side.record = _guarded(side.record, side.base)


def _guarded(columns: dict[str, exp.Expr], alias: str) -> dict[str, exp.Expr]:
    return {
        name: tree if isinstance(tree, exp.Column) else exp.Case().when(matched(alias), tree)
        for name, tree in columns.items()
    }
