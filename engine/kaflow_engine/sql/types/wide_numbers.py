"""Casts to U256, I256 and BIGNUM, and whole numbers of more digits than HUGEINT has, as DuckDB can
run them exactly."""

import re
from typing import TypeVar

from sqlglot import exp

from kaflow_engine.duck.wide.integers import BIGNUM, BOUNDS, DIGITS, is_wide
from kaflow_engine.duck.wide.taught import FITTING, cast_to
from kaflow_engine.errors import Location, SqlError
from kaflow_engine.sql.streamable import line_of
from kaflow_engine.sql.syntax import DIALECT, at_line

_LARGEST = 2**127 - 1
"""Literals up to here are integers to DuckDB, those beyond DOUBLE."""
_NAMES = re.compile(rf"\b({'|'.join(BOUNDS)})\b", re.IGNORECASE)

Tree = TypeVar("Tree", bound=exp.Expr)


def with_wide_numbers(tree: Tree, at: Location | None) -> Tree:
    """Return a tree whose casts to wide integers, and whose literals of that size, are calls.

    Args:
        tree: As it was parsed; it is not changed.
        at: Where its text starts.

    Raises:
        SqlError: A cast is to a type that has one of them inside.
    """
    if not any(_is_cast(node, at) or _is_large(node) for node in tree.walk()):
        return tree
    found = tree.copy()
    for node in reversed(list(found.walk())):  # what stands inside of a cast comes before it
        if not (_is_cast(node, at) or _is_large(node)):
            continue
        call = _call(node)
        if node is found:
            return call  # type: ignore[return-value]
        node.replace(call)
    return found


def bounded_inside(kind: str) -> bool:
    """Tell whether a type has U256 or I256 inside, whose bounds nothing would check.

    >>> bounded_inside("STRUCT(a U256)"), bounded_inside("u256"), bounded_inside("BIGNUM[]")
    (True, False, False)
    """
    return not is_wide(kind.upper()) and any(name != BIGNUM for name in _inside(kind))


def has_casts(sql: str) -> bool:
    """Tell whether an expression that can run has casts to wide integers."""
    written = sql.lower()  # sqlglot writes functions in capitals
    return any(f"{cast_to(kind)}(" in written for kind in BOUNDS)


def fitting(kind: str, sql: str) -> str:
    """Return SQL of a value that fails where it is a number of more than 256 bits.

    Args:
        kind: Its type: BIGNUM, or any other, of which nothing is asked.
        sql: What calculates it.
    """
    return f"{FITTING}({sql})" if kind == BIGNUM else sql


def _inside(kind: str) -> list[str]:
    return [name.upper() for name in _NAMES.findall(kind)]


def _call(node: exp.Expr) -> exp.Anonymous:
    if isinstance(node, exp.Cast):
        name = cast_to(_name(node), tried=isinstance(node, exp.TryCast))
        return exp.Anonymous(this=name, expressions=[node.this])
    return exp.Anonymous(this=cast_to(BIGNUM), expressions=[exp.Literal.string(node.name)])


def _is_cast(node: exp.Expr, at: Location | None) -> bool:
    if not isinstance(node, exp.Cast) or not _inside(_name(node)):
        return False
    if is_wide(_name(node)):
        return True
    raise SqlError(
        f"a cast to {_name(node)} cannot run here: U256, I256 and BIGNUM stand alone in casts",
        at_line(at, line_of(node)),
        "cast each value: list_transform(x, lambda e: CAST(e AS U256)), or {'a': CAST(x AS U256)}",
    )


def _name(cast: exp.Cast) -> str:
    return cast.to.sql(dialect=DIALECT).upper()


def _is_large(node: exp.Expr) -> bool:
    if not isinstance(node, exp.Literal) or node.is_string or len(node.name) > DIGITS:
        return False
    return node.name.isdecimal() and int(node.name) > _LARGEST
