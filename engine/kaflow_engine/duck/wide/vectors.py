"""What DuckDB lacks of BIGNUM, calculated with Python's integers over Arrow arrays.

Arrow carries a BIGNUM as DuckDB keeps it: three bytes with the number of bytes of the magnitude,
the first bit set; then the magnitude, most significant byte first. Of negative numbers all bits
are turned around, so that numbers sort as their bytes do.
https://github.com/duckdb/duckdb/blob/main/src/include/duckdb/common/types/bignum.hpp
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

import pyarrow as pa

from kaflow_engine.duck.wide.integers import NotWhole, number_of

_HEAD = 3
_SET, _CLEAR = 0x800000, 0x7FFFFF

Vector = pa.Array | pa.ChunkedArray


@lru_cache(maxsize=1)
def arrow_type() -> pa.DataType:
    """Return the Arrow type of BIGNUM."""
    return pa.opaque(pa.binary(), "bignum", "DuckDB")


def kept_bytes(number: int) -> bytes:
    """Return the bytes in which DuckDB keeps a number.

    >>> kept_bytes(5).hex(), kept_bytes(-5).hex()
    ('80000105', '7ffffefa')
    """
    size = (number.bit_length() + 7) // 8 or 1
    if number >= 0:
        return (_SET | size).to_bytes(_HEAD, "big") + number.to_bytes(size, "big")
    turned = number + (1 << 8 * size) - 1
    return (_CLEAR ^ size).to_bytes(_HEAD, "big") + turned.to_bytes(size, "big")


def number_in(kept: bytes) -> int:
    """Return the number in the bytes that DuckDB keeps.

    >>> number_in(bytes.fromhex("7ffffefa"))
    -5
    """
    found = int.from_bytes(kept[_HEAD:], "big")
    return found if kept[0] & 0x80 else found - (1 << 8 * (len(kept) - _HEAD)) + 1


def numbers_in(column: Vector) -> list[int | None]:
    """Return the numbers of a column of BIGNUM."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    assert isinstance(whole, pa.ExtensionArray)
    return [None if kept is None else number_in(kept) for kept in whole.storage.to_pylist()]


def column_of(numbers: Sequence[int | None]) -> pa.Array:
    """Return numbers as a column of BIGNUM."""
    kept = [None if number is None else kept_bytes(number) for number in numbers]
    return pa.ExtensionArray.from_storage(arrow_type(), pa.array(kept, pa.binary()))


def is_column(column: Vector) -> bool:
    """Tell whether a column is one of BIGNUM."""
    return column.type == arrow_type()


def product(left: int, right: int) -> int:
    """Return the product."""
    return left * right


def quotient(left: int, right: int) -> int | None:
    """Return the quotient without its fraction, as DuckDB does of integers; NULL for one by zero.

    >>> quotient(-7, 2), quotient(7, 0)
    (-3, None)
    """
    if right == 0:
        return None
    found = abs(left) // abs(right)
    return found if (left < 0) == (right < 0) else -found


def remainder(left: int, right: int) -> int | None:
    """Return what the quotient leaves, with the sign of the dividend; NULL for one by zero.

    >>> remainder(-7, 2), remainder(7, -2)
    (-1, 1)
    """
    if right == 0:
        return None
    found = abs(left) % abs(right)
    return -found if left < 0 else found


def of_two(calculate: Callable[[int, int], int | None], left: Vector, right: Vector) -> pa.Array:
    """Return what is calculated of two columns of BIGNUM; NULL where one of them is."""
    pairs = zip(numbers_in(left), numbers_in(right), strict=True)
    return column_of([None if a is None or b is None else calculate(a, b) for a, b in pairs])


def magnitude(column: Vector) -> pa.Array:
    """Return numbers without their sign."""
    return column_of([None if each is None else abs(each) for each in numbers_in(column)])


def read(texts: Vector, of: Vector, kinds: Vector) -> pa.Array:
    """Return texts as BIGNUM, as `number_of` does; NULL for what is none.

    Args:
        texts: Of the values.
        of: Their type.
        kinds: What they are cast to.
    """
    rows = zip(texts.to_pylist(), of.to_pylist(), kinds.to_pylist(), strict=True)
    return column_of([None if text is None else _number(text, own, to) for text, own, to in rows])


def _number(text: str, of: str, kind: str) -> int | None:
    try:
        return number_of(text, kind, of)
    except NotWhole:
        return None
