"""Sets that a query asks for a value: they are joined, and the query sees nothing else of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from sqlglot import exp

from kaflow_engine.errors import Location, SqlError
from kaflow_engine.sql.scope import Relation
from kaflow_engine.sql.shape import JoinShape

VALUE = "$value"
"""The column of a set that a query asks; no author can write it."""
_META = "asked"

Join = TypeVar("Join", bound=exp.Expr)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a join asks."""

    name: str
    """Of the dynamic table."""
    key: str
    """The column whose values are in it."""


def asking(join: Join, asked: Asked) -> Join:
    """Return a join as one that asks."""
    join.meta[_META] = asked
    return join


def asked_by(join: exp.Expr) -> Asked | None:
    """Return what a join asks; None of a join that its author wrote."""
    found: object = join.meta.get(_META)
    return found if isinstance(found, Asked) else None


def hide(relation: Relation) -> None:
    """Let a joined set be found by its name alone: it adds no column to `*`, and no name."""
    relation.outputs, relation.record = {}, relation.outputs or {}


def check_value(join: exp.Join, trees: Sequence[exp.Expr], at: Location | None) -> None:
    """Refuse to ask what the engine keeps for a value that is made of several sources.

    Args:
        join: The question.
        trees: Its condition, with columns resolved.
        at: Where it stands.

    Raises:
        SqlError: With the way out.
    """
    asked = asked_by(join)
    read = {c.name.partition(".")[0] for tree in trees for c in tree.find_all(exp.Column)}
    if asked is not None and len(read) > 2 and isinstance(join.this, exp.Subquery):
        raise SqlError(
            f"dynamic_table_check('{asked.name}', …) asks for a value that is made of several "
            "topics",
            at,
            "ask for a column of one of them; or write the joined rows to a topic, and ask in "
            "another pipeline",
        )


def as_asked(join: exp.Join, shape: JoinShape) -> JoinShape:
    """Return a join that sees a set as it was before what its own record adds, where it asks."""
    asked = asked_by(join)
    return shape if asked is None else replace(shape, asks=asked.name)


def answer_of(value: exp.Expr, found: exp.Expr) -> exp.Expr:
    """Return whether a value was found, as IN says it: NULL of NULL.

    Args:
        value: What is asked for.
        found: The column of the set.
    """
    known = exp.not_(exp.Is(this=found.copy(), expression=exp.null()))
    unknown = exp.Is(this=bracketed(value), expression=exp.null())
    return exp.Case().when(unknown, exp.null()).else_(known)


def bracketed(value: exp.Expr) -> exp.Expr:
    """Return a value as it stands beside an operator."""
    plain = isinstance(value, exp.Column | exp.Func | exp.Paren) and not isinstance(
        value, exp.Binary
    )
    return value.copy() if plain else exp.paren(value.copy())
