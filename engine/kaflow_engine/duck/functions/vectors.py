"""Python functions as DuckDB calls them: vectors of some thousand rows, as Arrow arrays."""

from collections.abc import Callable, Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from duckdb.func import ARROW, SPECIAL

from kaflow_engine.duck.binding import taking
from kaflow_engine.duck.functions.signature import Function, plain_name
from kaflow_engine.masking import without_secrets

_LONGEST = 200

Vector = pa.Array | pa.ChunkedArray


class FunctionFailed(Exception):
    """A function raised, or gave what is not of its type."""


def create(connection: duckdb.DuckDBPyConnection, key: str, function: Function) -> None:
    """Let the SQL of a database call a function.

    It has no side effects, as it is deterministic: DuckDB may calculate a row twice, or not at all.
    """
    names = [*(each.type for each in function.parameters), function.returns.type]
    casts = ", ".join(f"CAST(NULL AS {name})" for name in names)
    *arguments, returns = connection.execute(f"SELECT {casts}").to_arrow_table().schema.types
    called = _vectors(function, arguments, returns) if function.vectors else None
    connection.create_function(
        key,
        taking(len(arguments), called or _values(function, returns)),
        [each.type for each in function.parameters],
        function.returns.type,
        type=ARROW,
        null_handling=SPECIAL,
        side_effects=False,
    )


def _values(function: Function, returns: pa.DataType) -> Callable[..., pa.Array]:
    """Call a function of values row by row."""
    call, strict = function.call, _not_null(function)

    def vectors(*columns: Vector) -> pa.Array:
        made: list[Any] = []
        for row in zip(*(column.to_pylist() for column in columns), strict=True):
            if any(row[place] is None for place in strict):
                made.append(None)
                continue
            try:
                value = call(*row)
            except Exception as error:
                raise _failed(function, error) from None
            if value is None and not function.returns.null:
                raise _failed(function, TypeError("it returned None, which its type does not say"))
            made.append(value)
        try:
            return pa.array(made, returns)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise _failed(function, error) from None

    return vectors


def _vectors(
    function: Function, arguments: Sequence[pa.DataType], returns: pa.DataType
) -> Callable[..., pa.Array]:
    """Call a function of arrays with all rows at once, but those of NULL that it does not take."""
    strict = _not_null(function)

    def vectors(*columns: Vector) -> pa.Array:
        given = [_whole(each.cast(kind)) for each, kind in zip(columns, arguments, strict=True)]
        rows = len(given[0])
        there = [given[place].is_valid() for place in strict if given[place].null_count]
        taken = None
        if there:
            mask = there[0]
            for other in there[1:]:
                mask = pc.and_(mask, other)
            taken = pc.indices_nonzero(mask)
            given = [each.take(taken) for each in given]
            if not len(taken):
                return pa.nulls(rows, returns)
        try:
            made = _array(function.call(*given)).cast(returns)
        except Exception as error:
            raise _failed(function, error) from None
        if len(made) != len(given[0]):
            what = f"it returned {len(made)} values for {len(given[0])} rows"
            raise _failed(function, ValueError(what))
        if made.null_count and not function.returns.null:
            raise _failed(function, TypeError("it returned NULL, which its type does not say"))
        return made if taken is None else _put_back(made, taken, rows)

    return vectors


def _put_back(made: pa.Array, taken: pa.Array, rows: int) -> pa.Array:
    """Return values at the places that they were taken from, and NULL elsewhere."""
    numbers = pa.array(range(rows), pa.int64())
    return made.take(pc.index_in(numbers, taken.cast(pa.int64())))


def _not_null(function: Function) -> tuple[int, ...]:
    given = function.parameters
    lists = 1 if function.aggregates else 0  # of no rows it is NULL
    return tuple(n for n, each in enumerate(given) if not each.null and n >= lists)


def _whole(vector: Vector) -> pa.Array:
    return vector.combine_chunks() if isinstance(vector, pa.ChunkedArray) else vector


def _array(made: object) -> pa.Array:
    if not isinstance(made, Vector):
        raise TypeError(f"it returned {type(made).__name__}, not an Arrow array")
    return _whole(made)


def _failed(function: Function, error: Exception) -> FunctionFailed:
    """Return what a dead letter says; memory that is used up is no mistake of a row.

    Raises:
        MemoryError: It was that.
    """
    if isinstance(error, MemoryError):
        raise error
    said = without_secrets(" ".join(str(error).split()))
    said = said if len(said) <= _LONGEST else f"{said[:_LONGEST]}…"
    return FunctionFailed(f"{plain_name(function.name)}: {type(error).__name__}: {said}")
