"""Functions with DuckDB types, read off their annotations."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from decimal import Decimal
from hashlib import sha256
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from kaflow_engine.duck import binding
from kaflow_engine.duck.functions.declared import Declared
from kaflow_engine.errors import Location, ModelError

_SCALARS: Mapping[object, str] = {
    str: "VARCHAR",
    bool: "BOOLEAN",
    int: "BIGINT",
    float: "DOUBLE",
    bytes: "BLOB",
    date: "DATE",
    datetime: "TIMESTAMP",
    time: "TIME",
}
_VECTORS: Mapping[str, str | None] = {
    "Array": None,
    "ChunkedArray": None,
    "StringArray": "VARCHAR",
    "BooleanArray": "BOOLEAN",
    "Int8Array": "TINYINT",
    "Int16Array": "SMALLINT",
    "Int32Array": "INTEGER",
    "Int64Array": "BIGINT",
    "FloatArray": "FLOAT",
    "DoubleArray": "DOUBLE",
    "BinaryArray": "BLOB",
    "Date32Array": "DATE",
}
"""Arrow's arrays, by the names of their classes: Arrow itself is not needed to plan."""
_POSSIBLE = frozenset(
    "TEXT BOOLEAN TINYINT SMALLINT INT BIGINT UTINYINT USMALLINT UINT UBIGINT FLOAT DOUBLE "
    "DECIMAL VARBINARY DATE TIME TIMESTAMPNTZ TIMESTAMPTZ ARRAY STRUCT".split()
)
"""Types whose values are the same in DuckDB, Arrow and Python; as sqlglot calls them."""
_TYPES = "str, int, float, bool, bytes, date, datetime, time, list[…], or Annotated[…, 'TYPE']"
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_MOST = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """An argument, or what a function returns."""

    name: str
    type: str
    """As DuckDB writes it."""
    null: bool
    """It takes None, or may return it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function that SQL may call."""

    name: str
    version: int
    parameters: tuple[Parameter, ...]
    returns: Parameter
    vectors: bool
    """It takes and gives Arrow arrays instead of values."""
    deterministic: bool
    module: str
    at: Location = field(compare=False)
    call: Callable[..., Any] = field(compare=False)
    aggregates: bool = False
    """Its first argument is the list of the values of a group."""
    steps: "Steps | None" = field(default=None, compare=False)
    """Of an aggregate that can be taken up where it stopped."""

    @property
    def key(self) -> str:
        """What plans call it: its name, its version and a digest of its types.

        So a plan whose function gives other values is another plan, wherever it is called.
        """
        digest = sha256(self.signature.encode()).hexdigest()[:8]
        return f"{self.name}__v{self.version}_{digest}"

    @property
    def types(self) -> str:
        """The types of its arguments as calls are shown."""
        first, *others = self.parameters
        shown = replace(first, type=first.type.removesuffix("[]")) if self.aggregates else first
        return f"({', '.join(_typed(each) for each in (shown, *others))})"

    @property
    def signature(self) -> str:
        """Its types; `?` stands behind those that may be NULL."""
        return f"{self.name}{self.types} -> {_typed(self.returns)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """An aggregate in parts, each a function of its own: what a group keeps is a value."""

    kept: str
    """The type of what a group keeps."""
    first: Function
    """Of one row what a group of it keeps."""
    merged: Function
    """Of a list of what groups keep, what the group of all their rows keeps."""
    result: Function
    """Of what a group keeps, the value."""
    taken: Function | None
    """Of a row that goes, what takes it away when it is merged; None: it cannot be undone."""

    @property
    def functions(self) -> tuple[Function, ...]:
        """All of them."""
        return tuple(
            each for each in (self.first, self.merged, self.result, self.taken) if each is not None
        )


def plain_name(name: str) -> str:
    """Return what authors call a function, or the aggregate that it is a step of."""
    return name.partition("__")[0]


def _typed(parameter: Parameter) -> str:
    return f"{parameter.type}{'?' if parameter.null else ''}"


def typed(declared: Declared) -> Function:
    """Return a function with its types.

    Raises:
        ModelError: Its name, version or an annotation is none that SQL can have.
    """
    version = checked_version(declared)
    parameters = list(parameters_of(declared))
    if not parameters:
        raise refused(declared, "takes no argument", "let it take a column of the record")
    hints = hints_of(declared)
    if "return" not in hints:
        raise refused(declared, "does not say what it returns", "write -> str, or another type")
    call = declared.call
    if inspect.iscoroutinefunction(call) or inspect.isgeneratorfunction(call):
        raise refused(declared, "is async, or yields", "let it return its value")
    kinds = [read_type(declared, name, hints[name]) for name in (*parameters, "return")]
    vectors = {vector for _, vector in kinds}
    if len(vectors) > 1:
        raise refused(
            declared,
            "takes or gives both Arrow arrays and values",
            "annotate all arguments and the result with arrays, or none",
        )
    *arguments, returns = (found for found, _ in kinds)
    return Function(
        name=declared.name,
        version=version,
        parameters=tuple(arguments),
        returns=returns,
        vectors=vectors == {True},
        deterministic=declared.deterministic,
        module=declared.module,
        at=declared.at,
        call=declared.call,
    )


def checked_version(declared: Declared) -> int:
    """Return the version of a function whose name SQL can call.

    Raises:
        ModelError: Its name or its version is none.
    """
    _check_name(declared)
    version = declared.version
    if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version < _MOST:
        raise refused(declared, f"has version {version!r}", "versions count from 1: version=2")
    return version


def _check_name(declared: Declared) -> None:
    name = declared.name
    if not _NAME.fullmatch(name) or "__" in name or name.endswith("_"):
        hint = "use a-z, 0-9 and single _, such as name='risk_of'"
        raise refused(declared, "has a name that SQL cannot call", hint)
    if name in binding.functions() | binding.aggregates() or not _is_free(name):
        hint = f"give it another one: @{declared.decorator}(name='…')"
        raise refused(declared, "has a name that SQL has taken", hint)


def _is_free(name: str) -> bool:
    """Tell whether SQL has no other meaning of `name(x)`."""
    import sqlglot  # it takes long to load, and tasks without functions need it not
    from sqlglot import exp
    from sqlglot.errors import ParseError

    try:
        tree = sqlglot.parse_one(f"SELECT {name}(x)", dialect="duckdb")
    except ParseError:
        return False
    return isinstance(tree, exp.Select) and isinstance(tree.selects[0], exp.Anonymous)


def parameters_of(declared: Declared) -> Iterator[str]:
    """Yield the names of arguments.

    Raises:
        ModelError: One may be left out.
    """
    for name, each in inspect.signature(declared.call).parameters.items():
        plain = each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        if not plain or each.default is not each.empty:
            hint = "SQL passes all arguments by their places: give each a name and no default"
            raise refused(declared, f"has the argument '{name}', which may be left out", hint)
        yield name


def hints_of(declared: Declared) -> dict[str, Any]:
    """Return the annotations of a function, one at least for each argument.

    Raises:
        ModelError: One is missing, or means nothing.
    """
    try:
        hints = get_type_hints(declared.call, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        what = f"has an annotation that is not known: {error}"
        raise refused(declared, what, f"write {_TYPES}") from error
    for name in inspect.signature(declared.call).parameters:
        if name not in hints:
            raise refused(declared, f"does not say of what type '{name}' is", f"write {_TYPES}")
    return hints


def read_type(declared: Declared, name: str, hint: Any) -> tuple[Parameter, bool]:
    """Return what an annotation says, and whether it is one of Arrow's arrays.

    Raises:
        ModelError: It is no type of SQL.
    """
    inner, null = _optional(hint)
    kind, vector = _type(inner)
    whose = "its result" if name == "return" else f"'{name}'"
    if kind is None:
        shown = getattr(inner, "__name__", None) or str(inner)
        what = f"has the type {shown} of {whose}, which is none of SQL"
        cure = "Annotated[Decimal, 'DECIMAL(18, 2)'] says which" if inner is Decimal else _TYPES
        raise refused(declared, what, f"write {cure}" if cure is _TYPES else cure)
    try:
        found = binding.type_name(kind)
    except binding.Error as error:
        what = f"has the type '{kind}' of {whose}, which DuckDB does not know"
        raise refused(declared, what, "use one such as VARCHAR or DECIMAL(18, 2)") from error
    if not _POSSIBLE.issuperset(_parts(found)):
        what = f"has the type {found} of {whose}, which functions cannot have"
        raise refused(declared, what, "write VARCHAR or another type, and CAST in the query")
    return Parameter(name=name, type=found, null=null), vector


def _parts(kind: str) -> Iterator[str]:
    """Give the type itself, and those of its elements and fields."""
    from sqlglot import exp  # as above

    for part in exp.DataType.build(kind, dialect="duckdb").find_all(exp.DataType):
        yield str(part.this.name)


def _optional(hint: Any) -> tuple[Any, bool]:
    """Return an annotation without `None`, and whether it was there."""
    if get_origin(hint) in (Union, UnionType):
        rest = [each for each in get_args(hint) if each is not NoneType]
        if len(rest) == 1:
            return rest[0], True
    return hint, False


def _type(hint: Any) -> tuple[str | None, bool]:
    """Return the DuckDB type of an annotation, and whether it is one of Arrow's arrays."""
    if get_origin(hint) is Annotated:
        inner, *said = get_args(hint)
        named = [each for each in said if isinstance(each, str)]
        _, vector = _type(inner)
        return (named[0] if len(named) == 1 else None), vector
    if get_origin(hint) is list:
        kind, vector = _type(_optional(get_args(hint)[0])[0])
        return (None if kind is None or vector else f"{kind}[]"), False
    if getattr(hint, "__module__", "").startswith("pyarrow"):
        return _VECTORS.get(hint.__name__), True
    return (_SCALARS.get(hint) if isinstance(hint, type) else None), False


def refused(declared: Declared, what: str, hint: str) -> ModelError:
    """Return the error for a function that is not as it should be."""
    return ModelError(f"the {declared.decorator} '{declared.name}' {what}", declared.at, hint)
