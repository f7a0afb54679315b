"""Operands that can be NULL where none may be."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from kaflow_engine.errors import Location
from kaflow_engine.model.lenses.functions.table import function_of
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
    Number,
    OneOf,
    Prefix,
    Star,
    Text,
)
from kaflow_engine.model.lenses.lowering.nulls.causes import Cause, Causes, Rows, causes_among
from kaflow_engine.model.lenses.lowering.scope import FACETS
from kaflow_engine.model.sources.nulls import Operand

_NEVER: Causes = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRows:
    """A source of a SELECT."""

    called: str
    rows: Rows
    missing: Cause | None
    """Why it may have no row; None: it has one."""


@dataclass(slots=True, kw_only=True)
class NullSearch:
    """Goes through the expressions of a SELECT."""

    place: Callable[[int], Location]
    sources: Sequence[SourceRows]
    driving: SourceRows
    elements: frozenset[str]
    """Names behind LATERAL."""
    found: list[Operand] = field(default_factory=list[Operand])

    def require(self, node: Expression, taker: str) -> None:
        """Take down that an expression stands where NULL may not.

        Args:
            node: The expression.
            taker: What does not take it.
        """
        for cause in self.causes(node):
            self.found.append(
                Operand(
                    said=f"{taker} does not take NULL"
                    if isinstance(node, Constant)
                    else f"{shown(node)} can be NULL, which {taker} does not take",
                    at=self.place(node.offset),
                    hint=_way_out(node),
                    topic=cause.topic,
                    fields=cause.fields,
                    why=cause.why,
                )
            )

    def causes(self, node: Expression) -> Causes:
        """Return what makes an expression NULL, and look inside of it."""
        match node:
            case Field():
                return self._field(node)
            case Number() | Text() | Star():
                return _NEVER
            case Constant(value=value):
                return (Cause(why="it is written so"),) if value == "NULL" else _NEVER
            case Cast(value=value):
                return self.causes(value)
            case IsNull(value=value):
                self.causes(value)
                return _NEVER
            case Prefix(operator=operator, value=value):
                return self._strict((value,), f"'{operator}'")
            case Infix(operator=operator, left=left, right=right):
                return self._strict((left, right), f"'{operator}'")
            case Between(value=value, least=least, greatest=greatest):
                return self._strict((value, least, greatest), "BETWEEN")
            case OneOf(value=value, options=options):
                return self._strict((value, *options), "IN")
            case Case():
                return self._case(node)
            case Call():
                return self._call(node)
            case _:
                assert_never(node)

    def compare(self, node: Expression) -> None:
        """Look inside the condition of a JOIN: a NULL equals nothing there."""
        match node:
            case Infix(operator="AND" | "=", left=left, right=right):
                self.compare(left)
                self.compare(right)
            case _:
                self.causes(node)

    def _strict(self, nodes: Iterable[Expression], taker: str) -> Causes:
        for node in nodes:
            self.require(node, taker)
        return _NEVER

    def _case(self, node: Case) -> Causes:
        if node.value is not None:
            self.require(node.value, "CASE")
        results: list[Expression] = []
        for condition, result in node.branches:
            self.require(condition, "WHEN")
            results.append(result)
        found = [cause for each in results for cause in self.causes(each)]
        if node.otherwise is None:
            return (*found, Cause(why="it has no ELSE"))
        return (*found, *self.causes(node.otherwise))

    def _call(self, node: Call) -> Causes:
        name = node.name.text.upper()
        function = function_of(name, len(node.arguments))
        nulls = "passes" if function is None else function.nulls
        if nulls in ("refuses", "makes"):
            self._strict(node.arguments, name)
            return (Cause(why=f"{name} may find nothing"),) if nulls == "makes" else _NEVER
        inside = tuple(cause for each in node.arguments for cause in self.causes(each))
        if nulls == "removes":
            return _NEVER
        return (Cause(why="AS_NULLABLE says so"),) if nulls == "allows" else inside

    def _field(self, node: Field) -> Causes:
        path = [part.text for part in node.parts]
        if path[0] in self.elements:
            return _NEVER
        of = next((each for each in self.sources if each.called == path[0]), None)
        if of is not None and len(path) > 1:
            path = path[1:]
        if path[0] in FACETS:
            owner = of or self.driving
            if path[0] != "_value" or len(path) == 1:
                return _NEVER if owner.missing is None else (owner.missing,)
            of, path = owner, path[1:]
        if of is not None:
            return of.rows.causes(path) or _NEVER
        return causes_among((each.rows for each in self.sources), path) or _NEVER


def shown(node: Expression) -> str:
    """Return an expression as a message shows it."""
    match node:
        case Field(parts=parts):
            return "'" + ".".join(part.text for part in parts) + "'"
        case Call(name=name):
            return f"{name.text.upper()}(…)"
        case Cast():
            return "CAST(…)"
        case Case():
            return "CASE … END"
        case _:
            return "this"


def _way_out(node: Expression) -> str:
    match node:
        case Constant():
            return "write IS NULL, or IS NOT NULL"
        case Case(otherwise=None):
            return "write ELSE, with a value for all others"
        case Field():
            text = shown(node).strip("'")
        case _:
            text = "…"
    return f"write COALESCE({text}, <value>), or AS_NON_NULLABLE({text}) where it never is NULL"
