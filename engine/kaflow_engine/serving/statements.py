"""The SQL of a file → statements: one SELECT each, with the parameters that are declared."""

import re
from collections.abc import Iterator, Mapping

from kaflow_engine.duck.parsing import Complaint, parse
from kaflow_engine.errors import Location, ModelError, SqlError, UnknownName
from kaflow_engine.model.files.yaml_file import in_order, raise_all
from kaflow_engine.model.sqlflow.lowering.said import SqlText
from kaflow_engine.model.sqlflow.serving.reading import ServeFile
from kaflow_engine.model.sqlflow.serving.specs import DatasetSpec, LimitsSpec, ServeSpec
from kaflow_engine.serving.datasets import MOST_ROWS, TIMEOUT_S, Dataset, Span, Statement
from kaflow_engine.serving.reads import databases_of, reads_of

_TYPES = {"string": "VARCHAR", "integer": "BIGINT", "timestamp": "TIMESTAMPTZ"}
_PLACES = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$"
    r"|\$(?P<name>[A-Za-z_]\w*)",
    re.DOTALL,
)
"""Texts, names and comments, in which nothing is a parameter; or a parameter."""
_OWN_SCHEMAS = frozenset({"information_schema", "main", "memory", "pg_catalog", "system", "temp"})


def datasets_of(file: ServeFile) -> dict[str, Dataset]:
    """Return what a file serves, by name.

    Raises:
        ModelError: A statement is wrong.
        Problems: Several are.
    """
    mistakes: list[ModelError] = []
    found: dict[str, Dataset] = {}
    for number, spec in enumerate(file.spec.serve.datasets):
        statements = dict(_statements(file, spec, number, mistakes))
        widths = {name: each.max_range or 0 for name, each in statements.items()}
        found[spec.name] = Dataset(
            name=spec.name,
            description=spec.description,
            params={param.name: param.type for param in spec.params},
            statements={name: statements[name] for name in sorted(widths, key=lambda n: widths[n])},
            span=spec.range
            and Span(since=spec.range.since, until=spec.range.until, default=spec.range.default),
            most_rows=_limit(file.spec.serve, spec.limits, "max_rows") or MOST_ROWS,
            timeout_s=_limit(file.spec.serve, spec.limits, "timeout_seconds") or TIMEOUT_S,
            ttl_s=spec.cache.ttl_seconds if spec.cache else None,
        )
    raise_all(in_order(mistakes))
    return found


def _limit(serve: ServeSpec, own: LimitsSpec, key: str) -> int | None:
    return getattr(own, key) or getattr(serve.limits, key)


def _statements(
    file: ServeFile, spec: DatasetSpec, number: int, mistakes: list[ModelError]
) -> Iterator[tuple[str, Statement]]:
    path = ("serve", "datasets", number)
    if spec.sql is not None:
        yield "", _statement(file, spec, "", file.sql(*path, "sql"), mistakes)
    for name in spec.grains:
        sql = file.sql(*path, "grains", name, "sql")
        yield name, _statement(file, spec, name, sql, mistakes)


def _statement(
    file: ServeFile, spec: DatasetSpec, grain: str, sql: SqlText, mistakes: list[ModelError]
) -> Statement:
    types = {param.name: _TYPES[param.type] for param in spec.params}
    found = [*_wrong(sql, types)]
    text = sql.text.strip().rstrip(";")
    scanned = frozenset(n for n, each in file.attached.items() if each.kind != "duckdb")
    bound = _with_types(text, types)
    reads = () if found else reads_of(bound, scanned)
    if reads is None:
        reads = ()
        found.append(SqlError("cannot tell which tables this reads", sql.at, "write it simpler"))
    found += () if found else _unknown_databases(text, file, sql.at)
    mistakes += found
    of = spec.grains.get(grain)
    return Statement(
        dataset=spec.name,
        grain=grain,
        sql=sql,
        bound=bound,
        reads=reads,
        max_range=of.max_range if of else None,
        bucket=of.bucket if of else None,
    )


def _wrong(sql: SqlText, types: Mapping[str, str]) -> Iterator[ModelError]:
    parsed = parse(sql.text)
    if isinstance(parsed, Complaint):
        at = sql.line(parsed.line or 1)
        yield SqlError(f"cannot read the SQL: {parsed.text}", at, "it is DuckDB's SQL")
        return
    kinds = [each.kind for each in parsed]
    if kinds != ["SELECT"]:
        said = (
            "several statements" if len(kinds) > 1 else f"{kinds[0] if kinds else 'no'} statement"
        )
        yield SqlError(f"a data set is one SELECT, and this is {said}", sql.at, "write one SELECT")
        return
    for name in sorted(parsed[0].parameters - set(types)):
        if name.isdigit():
            yield SqlError("a parameter has no name", sql.at, "write $since, and not $1 or ?")
        else:
            yield UnknownName("parameter", name, types, _place_of(sql, name))
    for name in types:
        if name not in parsed[0].parameters:
            yield SqlError(
                f"the parameter '{name}' is not used",
                sql.at,
                f"write ${name} in each statement of the data set: one who asks with it would get "
                "rows as if it were not said",
            )


def _unknown_databases(sql: str, file: ServeFile, at: Location) -> Iterator[ModelError]:
    known = {*file.attached, *_OWN_SCHEMAS}
    for name in sorted({each.lower() for each in databases_of(sql)} - known):
        yield UnknownName("database", name, file.attached, at)


def _place_of(sql: SqlText, name: str) -> Location:
    places = (each for each in _PLACES.finditer(sql.text) if each["name"] == name)
    found = next(places, None)
    return sql.at if found is None else sql.line(sql.text.count("\n", 0, found.start()) + 1)


def _with_types(sql: str, types: Mapping[str, str]) -> str:
    """Say the types of parameters, which DuckDB takes for texts where they are NULL.

    >>> _with_types("SELECT $a, '$a' -- $a", {"a": "BIGINT"})
    "SELECT CAST($a AS BIGINT), '$a' -- $a"
    """

    def typed(place: re.Match[str]) -> str:
        name = place["name"]
        return f"CAST(${name} AS {types[name]})" if name in types else place[0]

    return _PLACES.sub(typed, sql)
