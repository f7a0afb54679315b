"""Sums and averages of integers and DECIMAL, as DuckDB gives them, also where rows are taken away.

DuckDB adds integers as HUGEINT, DECIMAL with 38 digits, and BIGNUM without a bound. A sum that
cannot hold what is added to it is broken for good; where rows are taken away it may be right again,
so that sums of large values are added in two parts, of which neither can be full.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kaflow_engine.duck.wide.integers import BIGNUM, NEGATIVE

_WHOLE = frozenset(
    {
        *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
        *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
    }
)
_BINARY = frozenset({"DOUBLE", "FLOAT", "UHUGEINT"})
"""Types that DuckDB adds as DOUBLE."""

_NARROW = 28
"""Digits of DECIMAL of which ten thousand million can be added."""

_HALF = f"1{'0' * 19}::HUGEINT"


@dataclass(frozen=True, slots=True)
class ExactSum:
    """How values of a type are added so that rows can be taken away."""

    parts: tuple[tuple[str, str], ...]
    """Columns that are added each by itself: a type, and what a value `{0}` is in it."""
    digits: Callable[..., str]
    """SQL over the sums of the parts: all digits of the total, without the point, as HUGEINT."""
    value: Callable[..., str]
    """SQL over the sums of the parts: the total."""


def is_whole(kind: str) -> bool:
    """Tell whether values of a type are integers that DuckDB adds exactly."""
    return kind in _WHOLE


def is_exact(kind: str) -> bool:
    """Tell whether sums of a type are exact."""
    return kind in ("BOOLEAN", BIGNUM) or is_whole(kind) or kind.startswith("DECIMAL(")


def added(kind: str) -> str:
    """Return the type in which DuckDB adds values of a type; empty: none that is kept."""
    if kind.startswith("DECIMAL("):
        return f"DECIMAL(38,{_scale(kind)})"
    if kind == BIGNUM:
        return BIGNUM
    return "HUGEINT" if is_exact(kind) else "DOUBLE" if kind in _BINARY else ""


def exact_sum(kind: str) -> ExactSum:
    """Return how values of an exact type are added so that rows can be taken away."""
    if not kind.startswith("DECIMAL("):
        if kind != "HUGEINT":
            return ExactSum(((added(kind), "{0}"),), _itself, _itself)
        return ExactSum(_halves("{0}"), _whole, _whole)
    scale = _scale(kind)
    if _width(kind) <= _NARROW:
        return ExactSum(((added(kind), "{0}"),), _digits, _itself)
    return ExactSum(_halves(_digits("{0}")), _whole, lambda *sums: _decimal(_whole(*sums), scale))


def minus(value: str, kind: str) -> str:
    """Return SQL of what adds as much as a value of a type less."""
    return f"{NEGATIVE}({value})" if kind == BIGNUM else f"-{value}"


def average_of(total: str, count: str, kind: str) -> str:
    """Return SQL of the average of values of a type, over their sum and count."""
    if added(kind) == "DOUBLE":
        return f"{total} / nullif({count}, 0)::DOUBLE"
    return average(_digits(total) if kind.startswith("DECIMAL(") else total, count, kind)


def average(digits: str, count: str, kind: str) -> str:
    """Return SQL of the exact average: DuckDB divides with more digits than a DOUBLE has.

    Args:
        digits: SQL of all digits of the sum, as HUGEINT.
        count: SQL of how many values it is of.
        kind: The exact type of the values.
    """
    one = f"1{'0' * 18}::HUGEINT"
    rest = f"(abs({digits}) % {count}) * {one}"
    fraction = ", ".join(
        f"lpad(({of} // {count})::VARCHAR, 18, '0')"
        for of in (rest, f"(({rest}) % {count}) * {one}")
    )
    sign = f"CASE WHEN {digits} < 0 THEN '-' ELSE '' END"
    scale = _scale(kind) if kind.startswith("DECIMAL(") else 0
    text = f"concat({sign}, (abs({digits}) // {count})::VARCHAR, '.', {fraction}, 'e-{scale}')"
    return f"CASE WHEN {count} > 0 THEN {text}::DOUBLE END"


def _itself(total: str) -> str:
    return total


def _halves(digits: str) -> tuple[tuple[str, str], ...]:
    return ("HUGEINT", f"({digits}) // {_HALF}"), ("HUGEINT", f"({digits}) % {_HALF}")


def _whole(high: str, low: str) -> str:
    """Return SQL of the number of which two sums are the halves; it fails where it is too large."""
    return f"(({high} + {low} // {_HALF}) * {_HALF} + {low} % {_HALF})"


def _digits(decimal: str) -> str:
    """Return SQL of a DECIMAL without its point."""
    return f"replace(({decimal})::VARCHAR, '.', '')::HUGEINT"


def _decimal(digits: str, scale: int) -> str:
    """Return SQL of the DECIMAL with these digits."""
    if not scale:
        return f"{digits}::DECIMAL(38,0)"
    point = f"1{'0' * scale}::HUGEINT"
    fraction = f"lpad((abs({digits}) % {point})::VARCHAR, {scale}, '0')"
    sign = f"CASE WHEN {digits} < 0 THEN '-' ELSE '' END"
    text = f"concat({sign}, (abs({digits}) // {point})::VARCHAR, '.', {fraction})"
    return f"{text}::DECIMAL(38,{scale})"


def _scale(kind: str) -> int:
    return int(kind.removesuffix(")").split(",")[1])


def _width(kind: str) -> int:
    return int(kind.removeprefix("DECIMAL(").split(",")[0])
