"""The queries of a pipeline by chain: those that read the same topics and join them alike."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from kaflow_engine.errors import Location, SqlError
from kaflow_engine.model.spec import Path
from kaflow_engine.sql.groups.row_times import timed
from kaflow_engine.sql.shape import Expr, GroupShape, OutputShape, QueryShape
from kaflow_engine.sql.syntax import at_line


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchShape:
    """One SELECT of an output."""

    output: int
    """Place among the outputs of the file."""
    branch: int
    """Place among the branches of its UNION ALL, 0 where there is none; of the queries below
    them -1, -2 and so on."""
    shape: QueryShape

    @property
    def is_looked_up(self) -> bool:
        """Whether it is a table of which events look up rows."""
        return self.branch < 0 and not self.shape.groups


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainShape:
    """Queries that share their sources and joins."""

    number: int
    branches: tuple[BranchShape, ...]

    @property
    def shape(self) -> QueryShape:
        """The first query: its sources and joins are those of all."""
        return self.branches[0].shape

    @property
    def is_looked_up(self) -> bool:
        """Whether it is a table of which events look up rows, and nothing else."""
        return all(each.is_looked_up for each in self.branches)


def chain_shapes(outputs: Sequence[Sequence[QueryShape]]) -> tuple[ChainShape, ...]:
    """Group queries by what they read and join, in the order in which a file names them.

    Args:
        outputs: Of each output the branches of its query.
    """
    groups: dict[Hashable, list[BranchShape]] = {}
    for i, branches in enumerate(outputs):
        for n, shape in enumerate(branches):
            found = BranchShape(output=i, branch=n, shape=shape)
            groups.setdefault(_read(shape), []).append(found)
        for n, shape in enumerate(below(branches), 1):
            found = BranchShape(output=i, branch=-n, shape=shape)
            groups.setdefault(_read(shape), []).append(found)
    return tuple(
        ChainShape(number=number, branches=tuple(branches))
        for number, branches in enumerate(groups.values())
    )


def with_said_at(
    shape: QueryShape, said_at: Callable[[Location], Path], at: Location
) -> QueryShape:
    """Return a query that knows where it stands when its joined rows leave, and so do those below
    it. Changes of tables leave as they arise.

    Args:
        shape: The query.
        said_at: Tells of the place of a join where that stands.
        at: Where its text begins.

    Raises:
        SqlError: Its joins say different things.
    """
    sources = tuple(
        each if each.query is None else replace(each, query=with_said_at(each.query, said_at, at))
        for each in shape.sources
    )
    groups = tuple(
        replace(group, beside=tuple(with_said_at(each, said_at, at) for each in group.beside))
        for group in shape.groups
    )
    found: Path | None = None
    for join in () if shape.is_table else shape.joins:
        place = at_line(at, join.line) or at
        own = said_at(place)
        if found is not None and own != found:
            raise SqlError(
                "this join and the one before it make the same rows, and their queries say "
                "different things of when these leave",
                place,
                "say the same of both; or write the rows of the first join to a topic, and join "
                "that in another pipeline",
            )
        found = own
    return replace(shape, sources=sources, groups=groups, said_at=found or ())


def with_times(shape: QueryShape) -> QueryShape:
    """Return a query of whose events those that are rows of groups have their time as a column."""
    return replace(
        shape,
        sources=tuple(
            replace(each, query=replace(each.query, groups=_timed(each.query.groups)))
            if each.once and each.query
            else each
            for each in shape.sources
        ),
    )


def _timed(groups: Sequence[GroupShape]) -> tuple[GroupShape, ...]:
    return (*groups[:-1], timed(groups[-1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Below:
    """The queries below those of outputs, by what is done with their rows; others are looked up."""

    union: frozenset[QueryShape]
    """Groups of others take them."""
    rows: frozenset[QueryShape]
    """They leave once, and drive a join, or are its events."""

    @classmethod
    def of(cls, shapes: Iterable[QueryShape]) -> "Below":
        """Return those below some queries.

        Args:
            shapes: With those below them.
        """
        every = tuple(shapes)
        return cls(
            union=frozenset(each for shape in every for each in shape.beside),
            rows=frozenset(
                source.query
                for shape in every
                for source in shape.sources
                if source.query is not None and (source.once or source.query == shape.rows_of)
            ),
        )

    def called(self, shape: QueryShape) -> str:
        """Return what the rows of a query are to those who take them."""
        return "union" if shape in self.union else "rows" if shape in self.rows else "lookup"


def below(branches: Sequence[QueryShape]) -> tuple[QueryShape, ...]:
    """Return the queries below the branches of an output, each once: those that they look up, and
    those whose rows their groups take beside their own."""
    return tuple(dict.fromkeys(each for shape in branches for each in shape.below))


def groups_of_tables(shape: QueryShape) -> tuple[GroupShape, ...]:
    """Return the groups whose rows come and are taken away with those of tables: up to where
    changes are rows of their own."""
    if not shape.is_table:
        return ()
    places = (n for n, group in enumerate(shape.groups) if group.append is not None)
    return shape.groups[: next(places, len(shape.groups))]


def is_timed(shape: QueryShape) -> bool:
    """Tell whether changes of tables have an event time that matters: they are grouped as rows of
    their own."""
    behind = shape.groups[len(groups_of_tables(shape)) :] if shape.is_table else ()
    return any(not group.is_made for group in behind)


def common_key(keys: Sequence[OutputShape | None]) -> OutputShape | None:
    """Return the key that all outputs name; None where one names none, or another one."""
    first = keys[0]
    if first is None or first.role == "own_key":
        return None
    same = all(key is not None and key.expr.sql == first.expr.sql for key in keys)
    return first if same else None


def common_filters(shapes: Sequence[QueryShape]) -> tuple[Expr, ...]:
    """Return the filters of the first query that every other one has, too; none reads elements."""
    first, *others = shapes
    elements = {each.alias for each in first.unnests}
    texts = [{part.sql for part in shape.where} for shape in others]
    return tuple(
        part
        for part in first.where
        if not part.aliases & elements and all(part.sql in known for known in texts)
    )


def _read(shape: QueryShape) -> Hashable:
    """Return what a query reads and joins, wherever it stands in a file, and who says when these
    rows leave."""
    sources = shape.sources
    return (
        tuple((e.alias, e.topic, e.reading, e.table, _texts(e.filter), e.query) for e in sources),
        tuple(
            (
                each.alias,
                each.kind,
                each.asks,
                tuple((pair.outer.sql, pair.inner.sql) for pair in each.keys),
            )
            for each in shape.joins
        ),
        shape.said_at,
        is_timed(shape),  # it has a clock, and the same tables without one follow batch time
    )


def _texts(parts: Sequence[Expr]) -> tuple[str, ...]:
    return tuple(part.sql for part in parts)
