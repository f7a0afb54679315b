"""Whole numbers of up to 256 bits: their types, their bounds, and the numbers that texts are.

DuckDB has one type for them, BIGNUM, which holds any whole number, and adds, subtracts, compares,
sorts and groups exactly. `U256` and `I256` are BIGNUM with bounds.
"""

import math
import re
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal

BIGNUM = "BIGNUM"
"""What DuckDB calls the type of an expression over such numbers."""

BOUNDS: Mapping[str, tuple[int, int]] = {
    "U256": (0, 2**256 - 1),
    "I256": (-(2**255), 2**255 - 1),
    BIGNUM: (-(2**255), 2**256 - 1),
}
"""The least and the greatest value of each type; of BIGNUM, all that has 256 bits, with or without
a sign."""

DIGITS = 78
"""Decimal digits of the largest of them."""

NEGATIVE = "negative"
"""The function that is the minus before a value of any type. DuckDB's own leaves unset the first
bytes of a BIGNUM, by which it is compared: to put it into a list copies it, and sets them."""

_LONGEST = 100
"""Characters of a text that may be such a number: any other is too large, or none."""
_WHOLE = re.compile(r"[+-]?[0-9]+")
_HEX = re.compile(r"([+-]?)0[xX]([0-9a-fA-F]+)")
_NUMBER = re.compile(
    r"[+-]?(?:[0-9]+(?:_[0-9]+)*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?", re.ASCII
)
_MENTIONED = re.compile("|".join((*BOUNDS, rf"\b{NEGATIVE}\(")), re.IGNORECASE)
_BINARY = ("FLOAT", "DOUBLE")


class NotWhole(ValueError):
    """A text is no whole number, or one beyond the bounds of a type."""


def is_wide(kind: str) -> bool:
    """Tell whether a type is one of these.

    >>> is_wide("U256"), is_wide("HUGEINT")
    (True, False)
    """
    return kind in BOUNDS


def in_duckdb(kind: str) -> str:
    """Return the type of DuckDB in which values of a type are kept.

    >>> in_duckdb("U256"), in_duckdb("VARCHAR")
    ('BIGNUM', 'VARCHAR')
    """
    return BIGNUM if kind in BOUNDS else kind


def mentions(sql: str) -> bool:
    """Tell whether a text names one of the types, a cast to it, or a function made for them.

    >>> mentions("SELECT TRY_TO_U256(x)"), mentions("SELECT x * 2"), mentions("NEGATIVE(x) < 0")
    (True, False, True)
    """
    return _MENTIONED.search(sql) is not None


def number_of(text: str, kind: str, of: str = "VARCHAR") -> int:
    """Return the whole number that a value is, cast to one of the types.

    Args:
        text: Of the value: digits, or hexadecimal digits behind `0x`. One with a fraction is none.
        kind: `U256`, `I256` or `BIGNUM`.
        of: The type of the value: DECIMAL, FLOAT and DOUBLE are rounded as for other integers.

    Raises:
        NotWhole: It is none, or beyond the bounds.
    """
    found = _read(text.strip(" \t\r\n"), of)
    least, most = BOUNDS[kind]
    if found is None:
        raise NotWhole(f"'{_shown(text)}' is not a {kind}")
    if not least <= found <= most:
        raise NotWhole(f"{_shown(text)} is beyond the bounds of {kind}")
    return found


def is_digits(text: str, kind: str) -> bool:
    """Tell whether DuckDB's own cast of a text to BIGNUM gives the number of a type that it is.

    >>> is_digits("-7", "I256"), is_digits("0xff", "U256"), is_digits("1.5", "U256")
    (True, False, False)
    """
    least, most = BOUNDS[kind]
    return len(text) <= _LONGEST and bool(_WHOLE.fullmatch(text)) and least <= int(text) <= most


def between_sql(sql: str, kind: str) -> str:
    """Return a condition: a BIGNUM is within the bounds of a type; NULL for NULL.

    Not BETWEEN: where the value is a BIGINT that is cast, DuckDB casts the bounds to BIGINT,
    which fails.
    """
    least, most = (f"'{bound}'::{BIGNUM}" for bound in BOUNDS[kind])
    return f"least(greatest({sql}, {least}), {most}) = ({sql})"


def _read(text: str, of: str) -> int | None:
    if of == "BOOLEAN" and text in ("true", "false"):
        return int(text == "true")
    if of in _BINARY:
        number = float(text)
        return round(number) if math.isfinite(number) else None
    if len(text) > _LONGEST:
        return None
    if _WHOLE.fullmatch(text):
        return int(text)
    if found := _HEX.fullmatch(text):
        return int(found[1] + found[2], 16)
    if not _NUMBER.fullmatch(text):
        return None
    exact = Decimal(text)
    if exact.adjusted() > DIGITS:
        return None
    if of.startswith("DECIMAL("):
        return int(exact.to_integral_value(ROUND_HALF_UP))
    return int(exact) if exact == exact.to_integral_value() else None


def _shown(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
