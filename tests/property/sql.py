"""The queries of a scenario as SQL: each by itself, or over relations that they share."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import assert_never

from tests.property.grouped_sql import grouped
from tests.property.scenario import Writing
from tests.property.unions import common_where
from tests.reference.beside import Headers
from tests.reference.conditions import (
    AllOf,
    AnyOf,
    Column,
    Compare,
    Condition,
    IsNull,
    Negated,
    Term,
    aliases_of,
    column_of,
)
from tests.reference.pipeline import Chain, Join, OraclePipeline, Output, Write

ELEMENTS = ("u", "v")
"""The aliases of unnested lists."""

Named = Callable[[Column], str]
"""How a query names a column."""


def _column(column: Column) -> str:
    return f"{column.alias}.{column.name}"


def _named(column: Column) -> str:
    return f"{column.alias}{'.' if column.alias in ELEMENTS else '_'}{column.name}"


def is_right(chain: Chain, writing: Writing) -> bool:
    """Tell whether a chain is written with RIGHT JOIN."""
    return writing.right and len(chain.joins) == 1 and not chain.joins[0].inner


def is_using(chain: Chain, join: Join, writing: Writing) -> bool:
    """Tell whether a join is written with USING: a later one would be ambiguous."""
    return (
        writing.using
        and join == chain.joins[0]
        and all(
            isinstance(left, Column)
            and isinstance(right, Column)
            and left.alias == chain.driving
            and left.name == right.name
            for left, right in join.on
        )
    )


def of_relation(pipeline: OraclePipeline, chain: Chain) -> Write:
    """Return what a relation holds that all queries of a chain can read: their columns, and their
    filters.
    """
    writes = [write for write in pipeline.writes if write.chain == chain]
    common = tuple(
        condition
        for condition in writes[0].where
        if all(condition in write.where for write in writes)
        and not aliases_of(condition) & set(ELEMENTS)
    )
    rest = [replace(each, where=_without(each.where, common)) for each in writes]
    columns = sorted({column for each in rest for column in each.columns()}, key=repr)
    select = tuple(Output(name=f"{c.alias}_{c.name}", term=c) for c in columns)
    return Write(chain=chain, select=select, where=common)


class Queries:
    """What the outputs of a pipeline are written as."""

    def __init__(self, pipeline: OraclePipeline, writing: Writing) -> None:
        self.relations: dict[str, str] = {}
        """The SQL of the relations that the outputs read."""
        self._outputs = pipeline.outputs
        self._writing = writing
        self._shared: dict[Chain, tuple[str, Write]] = {}
        for number, chain in enumerate(pipeline.chains if writing.relation else ()):
            name = f"joined_{number}" if number else "joined"
            self._shared[chain] = name, of_relation(pipeline, chain)
            self.relations[name] = _over_topics(self._shared[chain][1], writing)
        self.given = [self._given(number) for number in range(len(self._outputs))]
        """Of each output what it reads: `from` or `query`."""

    def _given(self, number: int) -> dict[str, str]:
        branches = self._outputs[number]
        if len(branches) == 1:
            (write,) = branches
            name, below = self._shared.get(write.chain, ("", None))
            same = below and (below.select, below.where) == (write.select, write.where)
            same = same and write.headers is None
            if same and not write.groups:
                return {"from": name} if not write.unnests else {"query": self._sql(write)}
            return {"query": self._sql(write)}
        if not self._writing.united:
            return {"query": self._union(branches)}
        common = common_where(branches)
        below = [
            replace(write, where=_without(write.where, where))
            for write, where in zip(branches, common, strict=True)
        ]
        name = f"united_{number}"
        self.relations[name] = self._union(below)
        own = "" if branches[0].headers is None else ", _headers AS _headers"
        if not common[0] and not own:
            return {"from": name}
        shown = {each.term: each.name for each in reversed(branches[0].select)}
        where = _where(common[0], lambda column: shown[column])
        return {"query": "\n".join([f"SELECT *{own} FROM {name}", *where])}

    def _union(self, branches: Sequence[Write]) -> str:
        return "\nUNION ALL\n".join(self._sql(write) for write in branches)

    def _sql(self, write: Write) -> str:
        if write.chain not in self._shared:
            return _over_topics(write, self._writing)
        name, below = self._shared[write.chain]
        where = _without(write.where, below.where)
        rest = [f"FROM {name}", *_unnests(write, _named), *_where(where, _named)]
        return _query(write, rest, self._writing, _named)


def _over_topics(write: Write, writing: Writing) -> str:
    chain = write.chain
    lines: list[str] = []
    first = f'"{chain.driving_topic}" {chain.driving}'
    if is_right(chain, writing):
        (join,) = chain.joins
        lines.append(f'FROM "{join.topic}" {join.alias}')
        lines.append(f"RIGHT JOIN {first}{_on(chain, join, writing)}")
    else:
        lines.append(f"FROM {first}")
        for join in chain.joins:
            kind = "INNER" if join.inner else "LEFT"
            lines.append(f'{kind} JOIN "{join.topic}" {join.alias}{_on(chain, join, writing)}')
    return _query(write, [*lines, *_unnests(write), *_where(write.where)], writing, _column)


def _query(write: Write, rest: Sequence[str], writing: Writing, named: Named) -> str:
    if not write.groups:
        return "\n".join([_selected(write, writing, named), *rest])
    entry = {each.name: _term(each.term, named) for each in write.select}
    return grouped(write, entry, rest, _condition, writing.turned)


def _without(where: Sequence[Condition], gone: Sequence[Condition]) -> tuple[Condition, ...]:
    return tuple(condition for condition in where if condition not in gone)


def _on(chain: Chain, join: Join, writing: Writing) -> str:
    if is_using(chain, join, writing):
        return f" USING ({', '.join(column_of(right).name for _, right in join.on)})"
    parts = [
        f"{_term(right)} = {_term(left)}"
        if place % 2 != writing.turned
        else f"{_term(left)} = {_term(right)}"
        for place, (left, right) in enumerate(join.on)
    ]
    return " ON " + " AND ".join(parts)


def _selected(write: Write, writing: Writing, named: Named) -> str:
    """Write the columns; a union has the names of its first branch, whatever others say."""
    more = f"_{write.branch}" if write.branch and writing.turned else ""
    columns = [f"{_term(each.term, named)} AS {each.name}{more}" for each in write.select]
    if write.headers is not None:
        columns.append(f"{_headers(write.headers, named)} AS _headers")
    return "SELECT\n  " + ",\n  ".join(columns)


def _headers(headers: Headers, named: Named) -> str:
    """Write headers: those of the driving record pass through whatever stands between."""
    if isinstance(headers, Column):
        return _column(headers) if named is _column else headers.name
    pairs = (
        f"'{name}': CAST({named(part)} AS VARCHAR)"
        if isinstance(part, Column)
        else f"'{name}': {_literal(part)}"
        for name, part in headers.pairs
    )
    return "map {" + ", ".join(pairs) + "}" if headers.pairs else "NULL"


def _unnests(write: Write, named: Named = _column) -> list[str]:
    return [
        f"CROSS JOIN unnest({named(each.list)}) AS {each.alias}({each.name})"
        for each in write.unnests
    ]


def _where(where: Sequence[Condition], named: Named = _column) -> list[str]:
    return ["WHERE " + " AND ".join(_condition(part, named) for part in where)] if where else []


def _term(term: Term, named: Named = _column) -> str:
    if isinstance(term, Column):
        return named(term)
    column = named(term.column)
    match term.function:
        case "coalesce":
            return f"coalesce({column}, {_literal(term.literal)})"
        case "upper":
            return f"upper({column})"
        case "plus":
            return f"{column} + {_literal(term.literal)}"
        case "integer":
            return f"CAST({column} AS BIGINT)"
        case _:
            assert_never(term.function)


def _condition(condition: Condition, named: Named) -> str:
    match condition:
        case Compare(column, op, literal):
            return f"{named(column)} {op} {_literal(literal)}"
        case IsNull(column, negated):
            return f"{named(column)} IS {'NOT ' if negated else ''}NULL"
        case AnyOf(parts):
            return "(" + " OR ".join(_condition(part, named) for part in parts) + ")"
        case AllOf(parts):
            return "(" + " AND ".join(_condition(part, named) for part in parts) + ")"
        case Negated(part):
            return f"NOT ({_condition(part, named)})"
        case _:
            assert_never(condition)


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    return str(value) if isinstance(value, int | float) else f"'{value}'"
