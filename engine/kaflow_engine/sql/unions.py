"""UNION ALL: its branches, with columns that have the same names and types in all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from kaflow_engine.errors import Location, ModelError, SqlError
from kaflow_engine.model.record_columns import HEADERS, KEY
from kaflow_engine.sql.flat import Flat
from kaflow_engine.sql.scope import Schemas
from kaflow_engine.sql.shape import OutputShape, QueryShape
from kaflow_engine.sql.syntax import DIALECT, at_line
from kaflow_engine.sql.types.bind import Binder, common_type, expressions, with_elements
from kaflow_engine.sql.types.groups import source_columns

_AS_MANY = "select as many columns in each branch; NULL AS name stands for one that is missing"
_IN_EACH: Mapping[str, str] = {
    KEY: "write AS _key in each branch, or in none and output.key",
    HEADERS: "write AS _headers in each branch, NULL AS _headers where there are none",
}
"""The way out where only some branches have a column AS a record column."""


def aligned(branches: Sequence[Flat], readable: Schemas, at: Location | None) -> list[Flat]:
    """Return the branches with the names of the first one, and the types that SQL gives them all.

    Types are left as they are while the columns of some topic are not known.

    Args:
        branches: In their order.
        readable: The columns of topics that a query may use.
        at: Where the SQL text begins.

    Raises:
        SqlError: They have not the same number of columns, a column has no common type, or only
            some have a key.
    """
    first = branches[0]
    for each in branches[1:]:
        _check_columns(first, each, at_line(at, each.line))
    named = [_named(each, first) for each in branches]
    binders = [_binder(each.shape(), readable, at) for each in named]
    if any(binder is None for binder in binders):
        return named
    known = [binder for binder in binders if binder is not None]
    shapes = [each.shape() for each in named]
    kinds = [
        _kind([shape.outputs[i] for shape in shapes], known, at) for i in range(len(first.outputs))
    ]
    return [
        _cast(each, [of_branch[n] if of_branch else None for of_branch in kinds])
        for n, each in enumerate(named)
    ]


def _check_columns(first: Flat, other: Flat, at: Location | None) -> None:
    for column in sorted({*first.sets} ^ {*other.sets}):
        text = f"only some branches of this UNION ALL have a column AS {column}"
        raise SqlError(text, at, _IN_EACH[column])
    if len(first.outputs) != len(other.outputs):
        raise SqlError(
            f"the first branch of this UNION ALL has {_columns(first)}, and this one "
            f"{_columns(other)}",
            at,
            _AS_MANY,
        )


def _columns(branch: Flat) -> str:
    count = len(branch.values)
    return f"{count} column" if count == 1 else f"{count} columns"


def _named(branch: Flat, first: Flat) -> Flat:
    """Give columns the names of the first branch by their position, key and headers their place."""
    values = iter(branch.values.values())
    own = {name: branch.outputs[branch.sets[column]] for column, name in first.sets.items()}
    outputs = {name: own[name] if name in own else next(values) for name in first.outputs}
    return replace(branch, outputs=outputs, sets=first.sets)


def _binder(shape: QueryShape, readable: Schemas, at: Location | None) -> Binder | None:
    columns = {topic: readable(topic) for each in (*shape.below, shape) for topic in each.topics}
    known = {topic: some for topic, some in columns.items() if some is not None}
    if len(known) < len(columns):
        return None
    rows = with_elements(source_columns(shape, known, at), shape, at)
    return Binder(rows, at, expressions(shape))


def _kind(
    outputs: Sequence[OutputShape], binders: Sequence[Binder], at: Location | None
) -> list[str | None] | None:
    """Return for each branch the type to which a column is cast, None where it has it already.

    None for all: it is wrong in some branch, which is reported where types are checked.
    """
    parts = [(binder, output.expr) for binder, output in zip(binders, outputs, strict=True)]
    try:
        kinds = [binder.type_of(expr) for binder, expr in parts]
    except ModelError:
        return None
    if len(set(kinds)) == 1:
        return None
    if outputs[0].role == "headers" and len(maps := {e for e in kinds if e.startswith("MAP")}) > 1:
        raise SqlError(
            f"the headers of this UNION ALL are {' and '.join(sorted(maps))}",
            at_line(at, outputs[0].expr.line),
            "give values one type in all branches: encode(…) makes a BLOB of text",
        )
    common = common_type(parts)
    for (binder, expr), kind in zip(parts, kinds, strict=True):
        if kind != common and not binder.becomes(expr, common):
            others = " and ".join(sorted(set(kinds) - {kind}))
            raise SqlError(
                f"column '{outputs[0].name}' of this UNION ALL is {kind} here and {others} in "
                "another branch",
                at_line(at, expr.line),
                "cast it in one of them with CAST(… AS …)",
            )
    return [None if kind == common else common for kind in kinds]


def _cast(branch: Flat, kinds: Sequence[str | None]) -> Flat:
    columns = zip(branch.outputs.items(), kinds, strict=True)
    outputs = {
        name: tree if kind is None else exp.cast(tree, kind, dialect=DIALECT)
        for (name, tree), kind in columns
    }
    return replace(branch, outputs=outputs)


def by_place(select: exp.Select) -> exp.Select:
    """Return a branch in which columns have names that need none: only their place counts."""
    found, seen = select.copy(), set[str]()
    parts: list[exp.Expr] = found.expressions
    for number, part in enumerate(parts, 1):
        name = part.alias_or_name if isinstance(part, exp.Alias | exp.Column) else ""
        if not part.is_star and (not name or name.lower() in seen):
            part.replace(exp.alias_(part.unalias().copy(), f"{number}", quoted=True))
        seen.add(name.lower())
    return found
