"""Columns and conditions with SQL's three-valued logic: True, False, None (unknown)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, assert_never

Values = Mapping[str, Mapping[str, object] | None]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of one alias."""

    alias: str
    name: str

    def of(self, values: Values) -> object:
        """Look the column up; NULL where the side is absent."""
        row = values.get(self.alias)
        return None if row is None else row.get(self.name)


class SqlFailure(Exception):
    """The SQL fails on this row."""


Function = Literal["coalesce", "upper", "plus", "integer"]


@dataclass(frozen=True, slots=True)
class Call:
    """A function of one column: `coalesce(c, 1)`, `upper(c)`, `c + 1`, `CAST(c AS BIGINT)`."""

    function: Function
    column: Column
    literal: int | str | None = None

    @property
    def alias(self) -> str:
        """The alias of the column."""
        return self.column.alias

    def of(self, values: Values) -> object:
        """Compute the function.

        Raises:
            SqlFailure: A text that is no number.
        """
        value: Any = self.column.of(values)
        if self.function == "coalesce":
            return self.literal if value is None else value
        if value is None:
            return None
        match self.function:
            case "upper":
                return str(value).upper()
            case "plus":
                return value + self.literal
            case "integer":
                if not str(value).isdigit():
                    raise SqlFailure(value)
                return int(value)


Term = Column | Call
"""What an output column or one side of a join condition is."""


def column_of(term: Term) -> Column:
    """The one column that a term reads."""
    return term.column if isinstance(term, Call) else term


@dataclass(frozen=True, slots=True)
class Compare:
    """A column compared with a literal (None: NULL, never true)."""

    column: Column
    op: Literal["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
    literal: int | float | str | bool | None


@dataclass(frozen=True, slots=True)
class IsNull:
    """`column IS NULL`, or with `negated` `IS NOT NULL`."""

    column: Column
    negated: bool = False


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Conditions joined by OR."""

    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class AllOf:
    """Conditions joined by AND (below an OR or a NOT)."""

    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class Negated:
    """`NOT condition`."""

    part: "Condition"


Condition = Compare | IsNull | AnyOf | AllOf | Negated


def holds(condition: Condition, values: Values) -> bool | None:
    """Evaluate a condition; only True passes a WHERE."""
    match condition:
        case Compare(column, op, literal):
            return _compare(column.of(values), op, literal)
        case IsNull(column, negated):
            return (column.of(values) is None) != negated
        case AnyOf(parts):
            results = [holds(part, values) for part in parts]
            return True if True in results else None if None in results else False
        case AllOf(parts):
            results = [holds(part, values) for part in parts]
            return False if False in results else None if None in results else True
        case Negated(part):
            result = holds(part, values)
            return None if result is None else not result
        case _:
            assert_never(condition)


def passes(conditions: tuple[Condition, ...], values: Values) -> bool:
    """Tell whether all conditions are true."""
    return all(holds(condition, values) is True for condition in conditions)


def columns_of(condition: Condition) -> frozenset[Column]:
    """The columns that a condition reads."""
    match condition:
        case Compare(column) | IsNull(column):
            return frozenset({column})
        case AnyOf(parts) | AllOf(parts):
            return frozenset[Column]().union(*(columns_of(part) for part in parts))
        case Negated(part):
            return columns_of(part)
        case _:
            assert_never(condition)


def aliases_of(condition: Condition) -> frozenset[str]:
    """The aliases that a condition touches."""
    return frozenset(column.alias for column in columns_of(condition))


def _compare(left: object, op: str, right: object) -> bool | None:
    if op.startswith("IS "):
        return (left == right) == (op == "IS NOT DISTINCT FROM")
    if left is None or right is None:
        return None
    order = _order(left, right)
    return {
        "=": order == 0,
        "<>": order != 0,
        "<": order < 0,
        "<=": order <= 0,
        ">": order > 0,
        ">=": order >= 0,
    }[op]


def _order(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)
