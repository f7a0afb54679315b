"""Wide integers in Avro: decimals of more than 38 digits, and 32 bytes of a fixed."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kaflow_engine.duck.wide.integers import BIGNUM, BOUNDS
from kaflow_engine.duck.wide.vectors import column_of, numbers_in
from kaflow_engine.formats.avro.types import Avro, Fixed, Logical, Primitive, Union

_DECIMAL = 38
"""Digits of the widest DECIMAL."""
_UNSIGNED = "kaflow.unsigned"
"""Our own logical type: the bytes are a whole number without a sign, the first byte the greatest
part of it."""


def is_wide_number(logical: Logical | None) -> bool:
    """Tell whether bytes are a whole number of more than 38 digits."""
    if logical is None or logical.name == _UNSIGNED:
        return logical is not None
    return logical.name == "decimal" and logical.precision > _DECIMAL and logical.scale == 0


def whole_number(kept: bytes, logical: Logical | None) -> int | None:
    """Return the number that bytes are, None where it has more than 256 bits.

    >>> whole_number(b"\\xff\\x00", Logical("decimal", precision=78))
    -256
    """
    signed = logical is None or logical.name != _UNSIGNED
    found = int.from_bytes(kept, "big", signed=signed)
    least, most = BOUNDS[BIGNUM]
    return found if least <= found <= most else None


def as_declared(kind: Avro, wanted: str) -> Avro:
    """Return bytes as what a column is declared to be.

    Args:
        kind: As it is written.
        wanted: The type of the column: where 32 bytes say nothing more, they have a sign for I256
            and none for U256; the bytes of a number are themselves for BLOB.
    """
    match kind:
        case Primitive(name=name, logical=logical) if wanted == "BLOB" and is_wide_number(logical):
            return Primitive(name)
        case Fixed(size=size, logical=logical) if wanted == "BLOB" and is_wide_number(logical):
            return Fixed(size)
        case Fixed(size=32, logical=None) if wanted == "U256":
            return Fixed(32, Logical(_UNSIGNED))
        case Fixed(size=32, logical=None) if wanted == "I256":
            return Fixed(32, Logical("decimal", precision=78))
        case Union(branches=branches):
            return Union(tuple(as_declared(branch, wanted) for branch in branches))
        case _:
            return kind


def whole_numbers(
    kept: pa.Array, logical: Logical | None
) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """Return the numbers that bytes are as a column of BIGNUM, and which of them these are."""
    found = [whole_number(each, logical) for each in kept.to_pylist()]
    fits = np.array([number is not None for number in found], np.bool_)
    return column_of([number or 0 for number in found]), fits


def wide_decimals(values: pa.Array, logical: Logical, width: int | None) -> list[bytes | None]:
    """Return wide integers as bytes with a sign, as few as there can be, or of a width.

    None where a value has more digits than the schema, or does not fit the width; empty for NULL.
    """
    most, unit = 10**logical.precision, 10**logical.scale
    found: list[bytes | None] = []
    for number in numbers_in(values):
        if number is None:
            found.append(b"")
            continue
        digits = number * unit
        turned = ~digits if digits < 0 else digits  # of as many bits, beside that of the sign
        size = width or turned.bit_length() // 8 + 1
        fits = abs(digits) < most and turned.bit_length() < 8 * size
        found.append(digits.to_bytes(size, "big", signed=True) if fits else None)
    return found
