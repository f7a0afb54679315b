"""A query as it was read, in the oracle's terms, and the headers that it sets."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from tests.reference.beside import HEADERS, NONE, Headers, Made
from tests.reference.conditions import Column, Condition, Term
from tests.reference.grouping import Grouping
from tests.reference.pipeline import Chain, Output, Unnest
from tests.reference.unions import NotExpressible


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query without UNION, read."""

    chain: Chain
    select: tuple[Output, ...]
    where: tuple[Condition, ...]
    unnests: tuple[Unnest, ...]
    sets_key: bool
    """The select list has `AS _key`."""
    groups: tuple[Grouping, ...] = ()
    """GROUP BY, one behind the other; the rest is about the rows that go into the first."""
    full: bool = False
    """Its first join keeps the rows of both sides."""
    own_key: Term | None = None
    """What `_key` is of its rows, where a query below it has made that."""
    headers: Headers | None = None
    """`AS _headers`."""

    @property
    def key(self) -> Term | None:
        """What `_key` is to a query above."""
        own = (output.term for output in self.select if output.name == "_key")
        return next(own, None) if self.sets_key else self.own_key


def read_headers(
    select: exp.Select, column: Callable[[exp.Expr], Column], below: Query | None = None
) -> Headers | None:
    """Read `AS _headers`; None where a query has none.

    Args:
        select: The query.
        column: Reads a column.
        below: The query whose rows it reads, if it does not read topics.

    Raises:
        NotExpressible: They are made of more than columns and texts.
    """
    node = next((item.unalias() for item in select.expressions if item.alias == HEADERS), None)
    match node:
        case None:
            return None
        case exp.Null():
            return NONE
        case exp.ToMap(this=exp.Struct() as struct):
            return Made(tuple(_pair(part, column) for part in struct.expressions))
        case exp.Column(name="_headers") if below is not None:
            return below.headers or Column(below.chain.driving, HEADERS)
        case exp.Column(name="_headers"):
            return column(node)
        case _:
            raise NotExpressible(node.sql())


def _pair(part: exp.Expr, column: Callable[[exp.Expr], Column]) -> tuple[str, Column | str | None]:
    if not isinstance(part, exp.PropertyEQ):
        raise NotExpressible(part.sql())
    name, value = str(part.this.name), part.expression
    match value:
        case exp.Null():
            return name, None
        case exp.Literal() if value.is_string:
            return name, str(value.this)
        case exp.Cast(this=exp.Column()) if value.to.is_type("VARCHAR", "TEXT"):
            return name, column(value.this)
        case exp.Column():
            return name, column(value)
        case _:
            raise NotExpressible(value.sql())
