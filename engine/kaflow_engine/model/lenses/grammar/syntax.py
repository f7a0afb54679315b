"""What a processor says, as frozen data: statements, queries, expressions, with offsets."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind = Literal["STREAM", "TABLE"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A part of a processor."""

    offset: int
    """Of its first character in the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Name(Node):
    """A name as it was written, without quotes."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Field(Node):
    """A field of a facet or a source: `f`, `a.b`, `_key`, `_meta.offset`, `m._key.id`."""

    parts: tuple[Name, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Number(Node):
    """A number as it was written."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(Node):
    """A text in quotes."""

    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(Node):
    """TRUE, FALSE or NULL."""

    value: Literal["TRUE", "FALSE", "NULL"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Star(Node):
    """Every row, in `COUNT(*)`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Node):
    """A function and its arguments."""

    name: Name
    arguments: tuple["Expression", ...]
    distinct: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeName(Node):
    """A type of a CAST, such as `DECIMAL(18, 4)`."""

    name: str
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast(Node):
    """`CAST(x AS INT)`."""

    value: "Expression"
    type: TypeName


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix(Node):
    """`NOT x`, `-x`."""

    operator: Literal["NOT", "-"]
    value: "Expression"


@dataclass(frozen=True, slots=True, kw_only=True)
class Infix(Node):
    """`a + b`, `a AND b`, `a LIKE b`, …"""

    operator: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True, kw_only=True)
class IsNull(Node):
    """`x IS NULL`, `x IS NOT NULL`."""

    value: "Expression"
    negated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Between(Node):
    """`x BETWEEN a AND b`."""

    value: "Expression"
    least: "Expression"
    greatest: "Expression"
    negated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOf(Node):
    """`x IN (a, b)`."""

    value: "Expression"
    options: tuple["Expression", ...]
    negated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(Node):
    """`CASE [x] WHEN a THEN b … [ELSE c] END`."""

    value: "Expression | None"
    branches: tuple[tuple["Expression", "Expression"], ...]
    otherwise: "Expression | None"


Expression: TypeAlias = (
    Field
    | Number
    | Text
    | Constant
    | Star
    | Call
    | Cast
    | Prefix
    | Infix
    | IsNull
    | Between
    | OneOf
    | Case
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything(Node):
    """`*`, `m.*`, `_value.*`, `_key.*`."""

    of: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection(Node):
    """One item of a SELECT."""

    value: Expression | Everything
    target: tuple[Name, ...] = ()
    """What stands behind AS."""
    written: str
    """The text of its expression."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(Node):
    """A topic or a WITH after FROM or JOIN."""

    name: Name
    alias: Name | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Duration(Node):
    """A duration in ms."""

    milliseconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Join(Node):
    """`[LEFT|RIGHT|INNER|OUTER] JOIN source [ON …] [WITHIN …]`."""

    side: Literal["INNER", "LEFT", "RIGHT", "FULL"]
    source: Source
    condition: Expression | None
    within: Duration | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lateral(Node):
    """`LATERAL list AS element`."""

    value: Expression
    name: Name


@dataclass(frozen=True, slots=True, kw_only=True)
class Window(Node):
    """`WINDOW BY HOP 5m,1m`, `TUMBLE 1d`, `SESSION 10m`."""

    kind: Literal["HOP", "TUMBLE", "SESSION"]
    size: Duration
    advance: Duration | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(Node):
    """A SELECT."""

    kind: Kind
    projections: tuple[Projection, ...]
    source: Source
    joins: tuple[Join, ...] = ()
    laterals: tuple[Lateral, ...] = ()
    where: Expression | None = None
    event_time: Field | None = None
    window: Window | None = None
    grace: Duration | None = None
    groups: tuple[Expression, ...] = ()
    having: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting(Node):
    """`SET a.b.c = value;`"""

    path: tuple[Name, ...]
    value: str
    value_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class With(Node):
    """`WITH name AS (SELECT …);`"""

    name: Name
    query: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage(Node):
    """A format after STORE KEY AS or VALUE AS."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert(Node):
    """`INSERT INTO topic [STORE KEY AS f VALUE AS f] SELECT …;`"""

    target: Name
    query: Query
    key: Storage | None = None
    value: Storage | None = None


Statement: TypeAlias = Setting | With | Insert
