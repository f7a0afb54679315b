"""Types of expressions, found by DuckDB without any data."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kaflow_engine.duck import binding
from kaflow_engine.duck.functions.catalogue import plain
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.duck.wide.integers import mentions
from kaflow_engine.errors import Location, SqlError
from kaflow_engine.flow.operators import PLACE
from kaflow_engine.model.columns import Column
from kaflow_engine.sql.shape import BATCH_TIME, MATCHED, Expr, QueryShape
from kaflow_engine.sql.syntax import at_line
from kaflow_engine.sql.types.literals import literal_casts
from kaflow_engine.sql.types.origins import columns_behind, topics_by_alias
from kaflow_engine.sql.types.refusals import TYPES_HINT, refusal
from kaflow_engine.sql.types.wide_numbers import bounded_inside, has_casts
from kaflow_engine.sql.types.wide_operands import lossy

_NO_LIST = "select the value as it is"
_NO_LISTS = {
    "STRUCT": "name its fields: x.field",
    "MAP": "write unnest(map_entries(x)): each element has a key and a value",
    "JSON": "cast it to a list first: unnest(CAST(x AS JSON[]))",
    "VARCHAR": "make a list of it first, such as string_split(x, ',') or CAST(x AS JSON[])",
}
AliasColumns = Mapping[str, Sequence[Column]]
"""The columns of each source alias."""


class Binder:
    """Answers what type an expression has over the columns of the sources."""

    def __init__(
        self, columns: AliasColumns, at: Location | None, exprs: Iterable[Expr] = ()
    ) -> None:
        """Take the sources.

        Args:
            columns: Of each alias.
            at: Where the SQL text starts.
            exprs: Expressions that will be asked about: to bind them together is much cheaper.
        """
        self._at = at
        self._sources = _sources(columns)
        self._wide = any(mentions(each.type) for some in columns.values() for each in some)
        self._types: dict[str, str] = {}
        self._sound: set[str] = set()
        self._bind_together(exprs)

    def type_of(self, expr: Expr) -> str:
        """Return the DuckDB type of an expression.

        Raises:
            ModelError: it cannot be bound, is an aggregate, or compares with a text that can
                never be read as a value of the other side.
        """
        kind = self._bind(expr.sql, expr.line)
        if expr.sql not in self._sound:
            self._sound.add(expr.sql)
            self._check_literals(expr)
            self._check_wide(expr)
        return kind

    def key_type(self, left: Expr, right: Expr) -> str:
        """Return the type to which SQL casts both sides of an equality.

        Raises:
            ModelError: they cannot be compared.
        """
        kinds = (self.type_of(left), self.type_of(right))
        if kinds[0] == kinds[1]:
            return kinds[0]
        both = replace(left, sql=f"({left.sql}) = ({right.sql})")
        self._bind(both.sql, both.line)
        self._check_wide(both)
        if "VARCHAR" in kinds:
            return kinds[1] if kinds[0] == "VARCHAR" else kinds[0]
        try:
            return self._ask(f"coalesce({left.sql}, {right.sql})")
        except binding.Error as error:
            raise SqlError(
                f"cannot compare values of type {kinds[0]} and type {kinds[1]} - "
                "an explicit cast is required",
                at_line(self._at, left.line),
                "cast one side with CAST(… AS …)",
            ) from error

    def becomes(self, expr: Expr, kind: str) -> bool:
        """Tell whether SQL casts an expression to a type where branches of a union have others."""
        if "VARCHAR" in (kind, self.type_of(expr)):
            return True
        try:
            return self._ask(f"coalesce({expr.sql}, NULL::{kind})") == kind
        except binding.Error:
            return False

    def select(self, expr: Expr) -> str:
        """Return SQL that selects an expression from one row."""
        return f"SELECT {expr.sql} AS x FROM {self._sources}"

    def check_condition(self, expr: Expr) -> None:
        """Refuse a filter that is not a condition."""
        kind = self.type_of(expr)
        if kind != "BOOLEAN":
            raise SqlError(
                f"the filter is of type {kind}, not BOOLEAN",
                at_line(self._at, expr.line),
                "compare it with something, such as > 0 or IS NOT NULL",
            )

    def _bind_together(self, exprs: Iterable[Expr]) -> None:
        asked = list(exprs)
        columns = (identifier(f"{alias}.{name}") for expr in asked for alias, name in expr.uses)
        texts = list(dict.fromkeys([*(expr.sql for expr in asked), *columns]))
        if not texts:
            return
        names = ", ".join(f"{text} AS x{i}" for i, text in enumerate(texts))
        # WHERE, because nothing but what has one value for each row can stand there.
        where = " OR ".join(f"({text}) IS NULL" for text in texts)
        try:
            types = binding.bind(f"SELECT {names} FROM {self._sources} WHERE {where}")
        except binding.Error:
            return  # one by one, the mistakes are found with their lines
        self._types.update(zip(texts, types, strict=True))

    def _bind(self, sql: str, line: int | None) -> str:
        if sql not in self._types:
            try:
                self._types[sql] = self._ask(sql)
            except binding.Error as error:
                raise refusal(error, sql, at_line(self._at, line), self._ask) from error
        return self._types[sql]

    def _ask(self, sql: str) -> str:
        return binding.bind(f"SELECT {sql} AS x FROM {self._sources} WHERE ({sql}) IS NULL")[0]

    def _check_literals(self, expr: Expr) -> None:
        for text, kind in literal_casts(expr.sql, lambda sql: self._bind(sql, expr.line)):
            if not binding.casts(text, kind):
                raise SqlError(
                    f"'{text}' is not a value of type {kind}",
                    at_line(self._at, expr.line),
                    "write such a value, or cast the other side with CAST(… AS VARCHAR)",
                )

    def _check_wide(self, expr: Expr) -> None:
        if not self._wide and not has_casts(expr.sql):
            return
        for part, kind in lossy(expr.sql, lambda sql: self._bind(sql, expr.line)):
            shown = plain(part).replace('"', "")
            raise SqlError(
                f"{shown} mixes BIGNUM with {kind}, and would not be exact",
                at_line(self._at, expr.line),
                "cast one side: CAST(… AS BIGNUM) is exact, CAST(… AS DOUBLE) is not",
            )


def common_type(branches: Iterable[tuple[Binder, Expr]]) -> str:
    """Return the type that UNION ALL gives a column, from its expression in each branch."""
    (kind,) = binding.bind(" UNION ALL ".join(binder.select(expr) for binder, expr in branches))
    return kind


def check_types(types: Mapping[str, str], at: Mapping[str, Location | None]) -> list[SqlError]:
    """Return one error for each declared column type that DuckDB does not know."""
    wrong: list[SqlError] = []
    for name, kind in types.items():
        try:
            normal_type(kind)
            if bounded_inside(kind):
                wrong.append(_inside(name, kind, at.get(name)))
        except binding.Error:
            wrong.append(
                SqlError(f"unknown type '{kind}' of column '{name}'", at.get(name), TYPES_HINT)
            )
    return wrong


def _inside(name: str, kind: str, at: Location | None) -> SqlError:
    return SqlError(
        f"the type '{kind}' of column '{name}' has U256 or I256 inside, which are types of columns",
        at,
        "write BIGNUM there, which holds both, and cast what is taken out of it",
    )


def normal_type(kind: str) -> str:
    """Return a type as DuckDB writes it.

    Raises:
        duckdb.Error: DuckDB does not know it.
    """
    return binding.type_name(kind)


def with_elements(
    columns: AliasColumns, query: QueryShape, at: Location | None
) -> dict[str, Sequence[Column]]:
    """Return the columns of sources together with the elements of unnested lists.

    Raises:
        ModelError: What is unnested cannot be bound, or is no list.
    """
    found = dict(columns)
    for unnest in query.unnests:
        binder = Binder(found, at, [of for _, of in unnest.lists])
        found[unnest.alias] = [
            Column(name, _element(binder.type_of(of), at_line(at, of.line)))
            for name, of in unnest.lists
        ] + [Column(PLACE, "BIGINT")]
    return found


def _element(kind: str, at: Location | None) -> str:
    if kind.endswith("]"):
        return kind[: kind.rindex("[")]
    hint = next((hint for name, hint in _NO_LISTS.items() if kind.startswith(name)), None)
    raise SqlError(f"unnest takes a list, and this is of type {kind}", at, hint or _NO_LIST)


def expressions(query: QueryShape) -> list[Expr]:
    """Return all expressions of a query."""
    found = [*query.where, *(output.expr for output in query.outputs)]
    found += [of for unnest in query.unnests for _, of in unnest.lists]
    for source in query.sources:
        found += source.filter
    for join in query.joins:
        for pair in join.keys:
            found += [pair.outer, pair.inner]
    for group in query.groups:
        found += [*group.expressions, *group.where]
    return found


def used_columns(queries: Iterable[QueryShape]) -> dict[str, set[str]]:
    """Return the columns of each topic that some of the queries read."""
    found: dict[str, set[str]] = {}
    for query in (each for shape in queries for each in (*shape.below, shape)):
        topics = topics_by_alias(query)
        found |= {topic: found.get(topic, set()) for topic in topics.values()}
        for expr in expressions(query):
            for alias, name in columns_behind(query, expr):
                if name != MATCHED:
                    found[topics[alias]].add(name)
    return found


def _sources(columns: AliasColumns) -> str:
    names = [f"NULL::TIMESTAMPTZ AS {identifier(BATCH_TIME)}"]
    for alias, some in columns.items():
        names.append(f"NULL::BOOLEAN AS {identifier(f'{alias}.{MATCHED}')}")
        names += [f"NULL::{c.type} AS {identifier(f'{alias}.{c.name}')}" for c in some]
    return f"(SELECT {', '.join(names)})"
