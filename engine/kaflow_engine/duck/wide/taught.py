"""A database is taught the types, and the operators and casts that DuckDB has not for BIGNUM.

Operators are overloads of DuckDB's own: its binder finds them by the types of what they are given,
and every other type has the operators that it had.
"""

from collections.abc import Callable
from typing import Any

import duckdb
from duckdb.func import ARROW, SPECIAL

from kaflow_engine.duck.wide.integers import BIGNUM, BOUNDS, NEGATIVE, between_sql, is_wide

FITTING = "within_256_bits"
"""The function that gives a number back, and fails for one of more than 256 bits."""

_READ = "kaflow_number_of"
_MEANINGS = {"*": "product", "/": "quotient", "//": "quotient", "%": "remainder"}


def cast_to(kind: str, *, tried: bool = False) -> str:
    """Return the function that a cast to a type is.

    >>> cast_to("U256"), cast_to("I256", tried=True)
    ('to_u256', 'try_to_i256')
    """
    return f"{'try_' if tried else ''}to_{kind.lower()}"


def cast(sql: str, kind: str) -> str:
    """Return SQL of a value, no wide integer, cast to a type, wide or not."""
    return f"{cast_to(kind)}({sql})" if is_wide(kind) else f"CAST({sql} AS {kind})"


def tried_cast(sql: str, kind: str, of: str) -> str:
    """Return SQL of a value cast to a type, NULL where that cannot be.

    Args:
        sql: Of the value.
        kind: The type that it is cast to, wide or not.
        of: Its own type.
    """
    if is_wide(kind):
        return f"{cast_to(kind, tried=True)}({sql})"
    return f"TRY_CAST({f'CAST({sql} AS VARCHAR)' if is_wide(of) else sql} AS {kind})"


def teach(connection: duckdb.DuckDBPyConnection) -> None:
    """Let the SQL of a database use U256 and I256, and calculate with BIGNUM.

    Args:
        connection: It is kept as long as the database is used: it owns the functions.
    """
    for operator, meaning in _MEANINGS.items():
        _create(connection, operator, _of_two(meaning), [BIGNUM, BIGNUM])
    _create(connection, "abs", _magnitude, [BIGNUM])
    _create(connection, _READ, _read, ["VARCHAR", "VARCHAR", "VARCHAR"])
    for kind in BOUNDS:
        if kind != BIGNUM:
            connection.execute(f"CREATE TYPE {kind} AS {BIGNUM}")
        read = f"{_READ}(CAST(x AS VARCHAR), typeof(x), '{kind}')"
        own, tried = f"CAST(x AS {BIGNUM})", cast_to(kind, tried=True)
        connection.execute(
            f"CREATE MACRO {tried}(x) AS CASE WHEN typeof(x) = '{BIGNUM}' "
            f"THEN CASE WHEN {between_sql(own, kind)} THEN {own} END "
            f"ELSE {_copied(read)} END"
        )
        said = f"concat('''', CAST(x AS VARCHAR), ''' is no {kind}')"
        connection.execute(
            f"CREATE MACRO {cast_to(kind)}(x) AS "
            f"CASE WHEN x IS NOT NULL THEN coalesce({_copied(f'{tried}(x)')}, error({said})) END"
        )
    connection.execute(f"CREATE MACRO {NEGATIVE}(x) AS {_copied('-x')}")
    connection.execute(
        f"CREATE MACRO {FITTING}(x) AS CASE WHEN x IS NULL OR {between_sql('x', BIGNUM)} THEN x "
        "ELSE error(concat(x, ' has more than 256 bits')) END"
    )


def _copied(sql: str) -> str:
    """Return SQL of a value in memory of DuckDB's own, which COALESCE and comparisons need."""
    return f"list_extract([{sql}], 1)"


def _create(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    call: Callable[..., Any],
    takes: list[str],
) -> None:
    connection.create_function(name, call, [*takes], BIGNUM, type=ARROW, null_handling=SPECIAL)


# DuckDB evaluates the annotations of what it calls, and Arrow, which takes long to load, is not
# needed before that.


def _of_two(meaning: str) -> Callable[[Any, Any], Any]:
    def calculated(left: Any, right: Any) -> Any:
        from kaflow_engine.duck.wide import vectors

        return vectors.of_two(getattr(vectors, meaning), left, right)

    return calculated


def _magnitude(column: Any) -> Any:
    from kaflow_engine.duck.wide import vectors

    return vectors.magnitude(column)


def _read(texts: Any, of: Any, kinds: Any) -> Any:
    from kaflow_engine.duck.wide import vectors

    return vectors.read(texts, of, kinds)
