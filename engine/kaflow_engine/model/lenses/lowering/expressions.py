"""Expressions of a processor as DuckDB's SQL."""

from collections.abc import Callable, Iterator
from string import Formatter
from typing import assert_never

from kaflow_engine.errors import SqlError, UnknownName
from kaflow_engine.model.lenses.functions.contract import Function
from kaflow_engine.model.lenses.functions.patterns import strftime_pattern
from kaflow_engine.model.lenses.functions.table import FUNCTIONS, REFUSED, function_of
from kaflow_engine.model.lenses.grammar.syntax import (
    Between,
    Call,
    Case,
    Cast,
    Constant,
    Expression,
    Field,
    Infix,
    IsNull,
    Node,
    Number,
    OneOf,
    Prefix,
    Star,
    Text,
    TypeName,
)
from kaflow_engine.model.lenses.lowering.scope import Scope
from kaflow_engine.model.lenses.lowering.writer import Writer, literal, quoted

TYPES = {
    "INT": "INTEGER",
    "INTEGER": "INTEGER",
    "LONG": "BIGINT",
    "BIGINT": "BIGINT",
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
    "DECIMAL": "DECIMAL",
    "STRING": "VARCHAR",
    "BOOLEAN": "BOOLEAN",
    "BYTES": "BLOB",
    "DATE": "DATE",
    "TIME": "TIME",
    "TIMESTAMP": "TIMESTAMP",
}
"""Types of Lenses, and those of DuckDB."""

_STRENGTH = {"OR": 1, "AND": 2, "NOT": 3, "||": 5, "+": 6, "-": 6, "*": 7, "/": 7, "%": 7}
"""Of DuckDB's operators, which bind `||` less than `+`."""
CONJUNCT = _STRENGTH["AND"]
_COMPARISON = 4
_SIGN = 8
_ATOM = 9


def write(node: Expression, scope: Scope, out: Writer, above: int = 0) -> None:
    """Write an expression, in parentheses where what stands around binds stronger.

    Raises:
        ModelError: It names something that is not there.
    """
    strength = _strength(node)
    out.at(node)
    if strength < above:
        out.put("(")
    _write(node, scope, out, strength)
    if strength < above:
        out.put(")")


def calls(node: Expression) -> Iterator[Call]:
    """Yield all functions that an expression calls."""
    if isinstance(node, Call):
        yield node
    for inner in parts(node):
        yield from calls(inner)


def parts(node: Expression) -> tuple[Expression, ...]:
    """Return the expressions right inside of one."""
    match node:
        case Field() | Number() | Text() | Constant() | Star():
            return ()
        case Call(arguments=arguments):
            return arguments
        case Cast(value=value) | Prefix(value=value) | IsNull(value=value):
            return (value,)
        case Infix(left=left, right=right):
            return (left, right)
        case Between(value=value, least=least, greatest=greatest):
            return (value, least, greatest)
        case OneOf(value=value, options=options):
            return (value, *options)
        case Case(value=value, branches=branches, otherwise=otherwise):
            pairs = [part for branch in branches for part in branch]
            return tuple(part for part in (value, *pairs, otherwise) if part is not None)
        case _:
            assert_never(node)


def aggregate_in(node: Expression, scope: Scope) -> Call | None:
    """Return the first aggregate that an expression calls."""
    for call in calls(node):
        function = function_of(call.name.text.upper(), len(call.arguments))
        own = function is None and scope.function_kind(call.name.text) == "aggregate"
        if own or (function is not None and function.group == "aggregate"):
            return call
    return None


def _strength(node: Expression) -> int:
    match node:
        case Infix(operator=operator):
            return _STRENGTH.get(operator, _COMPARISON)
        case Prefix(operator="NOT"):
            return _STRENGTH["NOT"]
        case Prefix():
            return _SIGN
        case IsNull() | Between() | OneOf():
            return _COMPARISON
        case _:
            return _ATOM


def _write(node: Expression, scope: Scope, out: Writer, strength: int) -> None:
    match node:
        case Field():
            out.put(scope.sql(node))
        case Number(text=text):
            out.put(text)
        case Text(value=value):
            out.put(literal(value))
        case Constant(value=value):
            out.put(value)
        case Star():
            out.put("*")
        case Call():
            _call(node, scope, out)
        case Cast(value=value, type=kind):
            out.put("CAST(")
            write(value, scope, out)
            out.put(" AS ", type_of(kind, scope), ")")
        case Prefix(operator="NOT", value=value):
            out.put("NOT ")
            write(value, scope, out, strength)
        case Prefix(value=value):
            out.put("-")
            write(value, scope, out, strength + 1)
        case Infix(operator=operator, left=left, right=right):
            write(left, scope, out, strength + (strength == _COMPARISON))
            out.put(f" {operator} ")
            write(right, scope, out, strength + (operator not in ("AND", "OR")))
        case IsNull(value=value, negated=negated):
            write(value, scope, out, strength + 1)
            out.put(" IS NOT NULL" if negated else " IS NULL")
        case Between(value=value, least=least, greatest=greatest, negated=negated):
            write(value, scope, out, strength + 1)
            out.put(" NOT BETWEEN " if negated else " BETWEEN ")
            write(least, scope, out, strength + 1)
            out.put(" AND ")
            write(greatest, scope, out, strength + 1)
        case OneOf(value=value, options=options, negated=negated):
            write(value, scope, out, strength + 1)
            out.put(" NOT IN (" if negated else " IN (")
            write_list(options, scope, out)
            out.put(")")
        case Case():
            _case(node, scope, out)
        case _:
            assert_never(node)


def _case(node: Case, scope: Scope, out: Writer) -> None:
    out.put("CASE")
    if node.value is not None:
        out.put(" ")
        write(node.value, scope, out)
    for condition, result in node.branches:
        out.put(" WHEN ")
        write(condition, scope, out)
        out.put(" THEN ")
        write(result, scope, out)
    if node.otherwise is not None:
        out.put(" ELSE ")
        write(node.otherwise, scope, out)
    out.put(" END")


def write_list(nodes: tuple[Expression, ...], scope: Scope, out: Writer) -> None:
    """Write expressions with commas between them."""
    for place, node in enumerate(nodes):
        if place:
            out.put(", ")
        write(node, scope, out)


def type_of(kind: TypeName, scope: Scope) -> str:
    """Return DuckDB's name of a type.

    Raises:
        UnknownName: There is no such type.
    """
    if kind.name not in TYPES:
        raise UnknownName("type", kind.name, TYPES, scope.source.place(kind.offset))
    sizes = ", ".join(str(size) for size in kind.sizes)
    return TYPES[kind.name] + (f"({sizes})" if sizes else "")


def _call(call: Call, scope: Scope, out: Writer) -> None:
    function = _function(call, scope)
    name = call.name.text.upper()
    own = function.group == "project" and scope.function_kind(name) == "aggregate"
    if call.distinct and not own and name not in ("COUNT", "SUM", "AVG"):
        raise _wrong(
            call, scope, f"DISTINCT cannot stand in {name}", "write it in COUNT, SUM or AVG"
        )
    for argument in call.arguments:
        if isinstance(argument, Star) and name != "COUNT":
            raise _wrong(argument, scope, f"'*' cannot stand in {name}", "name a field")
    template = list(Formatter().parse(function.template_of(len(call.arguments))))
    for place, (text, slot, form, _) in enumerate(template):
        out.put(text)
        if slot is None:
            continue
        if call.distinct:
            out.put("DISTINCT ")
        if slot == "headers":
            out.put(scope.headers())
        elif slot == "*":
            write_list(call.arguments, scope, out)
        elif form:
            out.put(_CONSTANTS[form](call.arguments[int(slot)], scope))
        else:
            behind = template[place + 1][0] if place + 1 < len(template) else ""
            alone = text.endswith(("(", ", ", "[")) and behind.startswith((")", ",", "]"))
            write(call.arguments[int(slot)], scope, out, 0 if alone else _ATOM)


def _function(call: Call, scope: Scope) -> Function:
    name = call.name.text.upper()
    if name in REFUSED:
        raise _wrong(call, scope, f"the function {name} is not available", REFUSED[name])
    function = function_of(name, len(call.arguments))
    if function is None and scope.function_kind(name):
        return Function("project", f"{name.lower()}({{*}})", 0)
    if function is None:
        raise UnknownName("function", name, FUNCTIONS, scope.source.place(call.offset))
    if not function.fits(len(call.arguments)):
        raise _wrong(call, scope, f"{name} takes {function.takes}, not {len(call.arguments)}", None)
    return function


def _pattern(node: Expression, scope: Scope) -> str:
    found = strftime_pattern(node.value) if isinstance(node, Text) else None
    if found is None:
        raise _wrong(
            node,
            scope,
            "this is no pattern of a time",
            "write a text of yyyy, MM, dd, HH, mm, ss and SSS, such as 'yyyy-MM-dd HH:mm'",
        )
    return literal(found)


def _name(node: Expression, scope: Scope) -> str:
    if not isinstance(node, Text) or not node.value:
        raise _wrong(node, scope, "this is no name of a field", "write a text, such as 'x'")
    return quoted(node.value)


def _paths(node: Expression, scope: Scope) -> str:
    """Return the SQL of a path in JSON that finds a list, also where it has no wildcard."""
    if not isinstance(node, Text) or not node.value.startswith("$") or "?" in node.value:
        hint = "write a text of names, places and wildcards, such as '$.a[*].b'"
        raise _wrong(node, scope, "this is no path in JSON", hint)
    return literal(node.value) if "*" in node.value else f"[{literal(node.value)}]"


_CONSTANTS: dict[str, Callable[[Expression, Scope], str]] = {
    "pattern": _pattern,
    "name": _name,
    "paths": _paths,
}
"""What stands for a constant argument, by the form that a template names."""


def _wrong(node: Node, scope: Scope, message: str, hint: str | None) -> SqlError:
    return SqlError(message, scope.source.place(node.offset), hint)
