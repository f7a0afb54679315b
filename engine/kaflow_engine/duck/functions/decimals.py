"""Functions that every query may call: exact decimals of up to a thousand digits.

A decimal is a BLOB that compares, sorts, groups and joins as its number: DuckDB has no such type
beyond 38 digits. `1.0` and `1` are the same bytes.
"""

import decimal
from decimal import Decimal

from kaflow_engine.duck.functions.declared import function

MOST_DIGITS = 1000
_QUOTIENT_SCALE = 18
_EXACT = decimal.Context(
    prec=4 * MOST_DIGITS,
    rounding=decimal.ROUND_HALF_EVEN,
    traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Inexact],
)
_ROUNDED = decimal.Context(
    prec=4 * MOST_DIGITS,
    rounding=decimal.ROUND_HALF_EVEN,
    traps=[decimal.InvalidOperation, decimal.DivisionByZero],
)
_BELOW, _ZERO, _ABOVE = b"\x01", b"\x02", b"\x03"
_MIDDLE = 2**31


@function
def decimal_of(text: str, digits: int, scale: int) -> bytes:
    """Return the decimal that a text says, of so many digits, `scale` of them behind the point.

    >>> decimal_text(decimal_of("-12.500", 5, 2))
    '-12.5'
    """
    found = _read(text)
    if found is None:
        raise ValueError(f"'{text[:40]}' is no decimal number")
    if not _fits(found, digits, scale):
        raise ValueError(f"'{text[:40]}' has more than {digits} digits, {scale} behind the point")
    return _packed(found)


@function
def try_decimal_of(text: str, digits: int, scale: int) -> bytes | None:
    """Return what `decimal_of` does; NULL where it fails.

    >>> try_decimal_of("x", 5, 2), try_decimal_of("1.234", 5, 2)
    (None, None)
    """
    found = _read(text)
    return _packed(found) if found is not None and _fits(found, digits, scale) else None


@function
def decimal_text(value: bytes) -> str:
    """Return the digits of a decimal, without zeros that say nothing.

    >>> decimal_text(decimal_of("0012.50", 9, 2)), decimal_text(decimal_of("5e3", 9, 2))
    ('12.5', '5000')
    """
    return f"{_unpacked(value):f}"


@function
def decimal_add(a: bytes, b: bytes) -> bytes:
    """Return the sum."""
    return _packed(_EXACT.add(_unpacked(a), _unpacked(b)))


@function
def decimal_sub(a: bytes, b: bytes) -> bytes:
    """Return the difference."""
    return _packed(_EXACT.subtract(_unpacked(a), _unpacked(b)))


@function
def decimal_mul(a: bytes, b: bytes) -> bytes:
    """Return the product."""
    return _packed(_EXACT.multiply(_unpacked(a), _unpacked(b)))


@function
def decimal_div(a: bytes, b: bytes) -> bytes | None:
    """Return the quotient, half to even at 18 digits behind the point, or as many as `a` has; NULL
    by 0.

    >>> decimal_text(decimal_div(decimal_of("2", 9, 0), decimal_of("3", 9, 0)))
    '0.666666666666666667'
    """
    above, below = _unpacked(a), _unpacked(b)
    if not below:
        return None
    scale = max(_QUOTIENT_SCALE, -_exponent(above))
    return _packed(_rounded(_ROUNDED.divide(above, below), scale))


@function
def decimal_mod(a: bytes, b: bytes) -> bytes | None:
    """Return what is left of a division, with the sign of `a`; NULL by 0."""
    above, below = _unpacked(a), _unpacked(b)
    return _packed(_EXACT.remainder(above, below)) if below else None


@function
def decimal_neg(value: bytes) -> bytes:
    """Return the number with the other sign."""
    return _packed(-_unpacked(value))


@function
def decimal_abs(value: bytes) -> bytes:
    """Return the number without its sign."""
    return _packed(abs(_unpacked(value)))


@function
def decimal_round(value: bytes, scale: int) -> bytes:
    """Return the number with so many digits behind the point, half to even.

    >>> [decimal_text(decimal_round(decimal_of(t, 9, 3), 2)) for t in ("0.125", "0.135")]
    ['0.12', '0.14']
    """
    return _packed(_rounded(_unpacked(value), scale))


def _read(text: str) -> Decimal | None:
    plain = text.strip()
    if not plain.isascii() or "_" in plain:
        return None  # Python reads more than SQL does
    try:
        found = Decimal(plain)
    except decimal.InvalidOperation:
        return None
    return found if found.is_finite() else None


def _fits(value: Decimal, digits: int, scale: int) -> bool:
    if not 0 < digits <= MOST_DIGITS or not 0 <= scale <= digits:
        raise ValueError(f"a decimal has 1 to {MOST_DIGITS} digits, some of them behind the point")
    above = value.adjusted() + 1 if value else 0
    behind = -_exponent(value.normalize(_ROUNDED)) if value else 0
    return above <= digits - scale and behind <= scale


def _exponent(value: Decimal) -> int:
    found = value.as_tuple().exponent
    assert isinstance(found, int)
    return found


def _rounded(value: Decimal, scale: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-scale), context=_ROUNDED)


def _packed(value: Decimal) -> bytes:
    """Return bytes that sort as numbers do: the sign, how large it is, and its digits."""
    if not value:
        return _ZERO
    digits = value.as_tuple().digits
    while digits[-1] == 0:
        digits = digits[:-1]
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a result has {len(digits)} digits, and at most {MOST_DIGITS} are kept")
    body = (value.adjusted() + _MIDDLE).to_bytes(4, "big") + bytes(each + 1 for each in digits)
    if value > 0:
        return _ABOVE + body
    return _BELOW + bytes(255 - each for each in body) + b"\xff"


def _unpacked(value: bytes) -> Decimal:
    if value == _ZERO:
        return Decimal(0)
    sign, body = value[:1], value[1:]
    if sign == _BELOW:
        body = bytes(255 - each for each in body[:-1])
    digits = tuple(each - 1 for each in body[4:])
    if sign not in (_BELOW, _ABOVE) or not digits or not set(digits) <= set(range(10)):
        raise ValueError("these bytes are no decimal: write decimal_of(text, digits, scale)")
    exponent = int.from_bytes(body[:4], "big") - _MIDDLE + 1 - len(digits)
    return Decimal((int(sign == _BELOW), digits, exponent))
