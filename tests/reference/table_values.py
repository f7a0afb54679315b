"""SQL over rows of tables, by DuckDB: one row at a time, or one group."""

# pyright: basic

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import duckdb

Row = Mapping[str, Mapping[str, object] | None]
"""The columns of each alias; None: there is no row of that side."""
Types = Mapping[str, Mapping[str, str]]
"""The types of the columns of each alias."""


class RowFails(Exception):
    """The SQL fails on a row, or on a group."""


class Evaluator:
    """Evaluates SQL over rows of joined tables."""

    def __init__(self, types: Types) -> None:
        self._types = types

    def of_row(self, row: Row, expressions: Sequence[str]) -> tuple[Any, ...]:
        """Return the values of expressions over one row, as JSON has them.

        Raises:
            RowFails: One of them fails.
        """
        if not expressions:
            return ()
        return _values(f"SELECT [{_as_json(expressions)}] FROM {self._rows([row])}")[0]

    def passes(self, row: Row, conditions: Sequence[str]) -> bool:
        """Tell whether one row fulfils all conditions.

        Raises:
            RowFails: One of them fails before another one is false.
        """
        every = True
        for sql in conditions:
            (said,) = self.of_row(row, [sql])
            if said is False:
                return False
            every = every and said is True
        return every

    def of_group(
        self, rows: Iterable[Row], select: Sequence[tuple[str, str]], groups: str, having: str
    ) -> dict[str, Any] | None:
        """Return the result of one group; None where it does not fulfil HAVING.

        Raises:
            RowFails: The result fails.
        """
        items = _as_json([sql for _, sql in select])
        given = list(rows)
        rest = self._rows(given) if given else f"{self._rows([{}])} WHERE false"
        found = _values(f"SELECT [{items}] FROM {rest} {groups} {having}")
        names = [name for name, _ in select]
        return dict(zip(names, found[0], strict=True)) if found else None

    def _rows(self, rows: Sequence[Row]) -> str:
        aliases = sorted(self._types)
        listed = ", ".join(
            "(" + ", ".join(self._struct(alias, row.get(alias)) for alias in aliases) + ")"
            for row in rows
        )
        names = ", ".join(f'"{alias}"' for alias in aliases)
        return f"(VALUES {listed}) AS joined_rows({names})"

    def _struct(self, alias: str, values: Mapping[str, object] | None) -> str:
        types = self._types[alias]
        kind = ", ".join(f'"{name}" {kind}' for name, kind in types.items())
        if values is None:
            return f"NULL::STRUCT({kind})"
        parts = (f"'{name}': {_literal(values.get(name), of)}" for name, of in types.items())
        return "{" + ", ".join(parts) + f"}}::STRUCT({kind})"


def as_type(text: str, kind: str) -> object:
    """Return what a text is as a value of a type, as JSON has it.

    Raises:
        RowFails: It is none.
    """
    return _values(f"SELECT [to_json({_literal(text, kind)})]")[0][0]


def _as_json(expressions: Sequence[str]) -> str:
    return ", ".join(f"to_json({sql})" for sql in expressions)


def _literal(value: object, kind: str) -> str:
    if value is None:
        return f"NULL::{kind}"
    text = value if isinstance(value, str) else json.dumps(value)
    return "CAST('" + text.replace("'", "''") + f"' AS {kind})"


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


_known: dict[str, Any] = {}


def _values(sql: str) -> list[tuple[Any, ...]]:
    """Run a statement, each of whose rows is a list of JSON; the same one only once."""
    if len(_known) > 100_000:
        _known.clear()
    if sql not in _known:
        try:
            found = _connection().sql(sql).fetchall()
            _known[sql] = [tuple(map(_read, row)) for (row,) in found]
        except duckdb.Error as error:
            _known[sql] = RowFails(str(error))
    known = _known[sql]
    if isinstance(known, RowFails):
        raise known
    return known


def _read(text: str | None) -> Any:
    return None if text is None else json.loads(text)
