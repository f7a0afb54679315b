"""Functions of the project in queries: their calls are named as plans name them."""

from collections.abc import Iterator
from typing import TypeVar

from sqlglot import exp

from kaflow_engine.duck import binding
from kaflow_engine.duck.functions import catalogue
from kaflow_engine.duck.functions.built_in import BUILT_IN
from kaflow_engine.duck.functions.signature import Function
from kaflow_engine.errors import Location, ModelError, SqlError, UnknownName
from kaflow_engine.sql.streamable import line_of
from kaflow_engine.sql.syntax import at_line
from kaflow_engine.sql.types.copied import copy_in_coalesce

_NOT_BY_PLACE = (exp.PropertyEQ, exp.Kwarg, exp.Alias, exp.Distinct, exp.Order, exp.Star)

_NOT_OF_AGGREGATES = (exp.PropertyEQ, exp.Kwarg, exp.Alias, exp.Star)

Tree = TypeVar("Tree", bound=exp.Expr)


def with_functions(tree: Tree, at: Location | None) -> Tree:
    """Return a tree whose calls of functions of the project have the names that plans give them.

    Args:
        tree: As it was parsed; it is not changed.
        at: Where its text starts.

    Raises:
        SqlError: A function takes other arguments, or is not deterministic.
        UnknownName: A call names a function as plans do.
        ModelError: The functions of the project cannot be imported, or one of the engine needs an
            optional part that is not installed.
    """
    for call in tree.find_all(exp.Anonymous):
        if catalogue.IN_PLANS.fullmatch(call.name):
            raise unknown_function(call.name, at_line(at, line_of(call)))
    if not any(_calls(tree, at)):
        return tree
    copy = tree.copy()
    for call, function in list(_calls(copy, at)):
        _check(call, function, at_line(at, line_of(call)))
        call.set("this", function.key)
        if function.aggregates:
            _over_list(call)
    copy_in_coalesce(copy, _is_of_project)
    return copy


def _is_of_project(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and bool(catalogue.IN_PLANS.fullmatch(node.name))


def _over_list(call: exp.Anonymous) -> None:
    """Let an aggregate of the project take the list of the values of a group, those that pass its
    FILTER."""
    first, *said = call.expressions
    values: exp.Expr = exp.ArrayAgg(this=first)
    around = call.parent
    if isinstance(around, exp.Filter):
        values = exp.Filter(this=values, expression=around.expression)
        around.replace(call)
    call.set("expressions", [values, *said])


def is_function(name: str) -> bool:
    """Tell whether a name is that of a scalar function, as plans call it."""
    return name.lower() in binding.functions() or catalogue.IN_PLANS.fullmatch(name) is not None


def unknown_function(name: str, at: Location | None, *, of_rows: bool = False) -> UnknownName:
    """Return the error for a function that does not exist.

    Args:
        name: As it was called.
        at: Where.
        of_rows: No aggregate can stand there, so none is suggested.
    """
    ours = sorted(catalogue.found())
    known = binding.functions().union(ours, BUILT_IN, () if of_rows else binding.aggregates())
    error = UnknownName("function", name, known, at)
    if name.lower() in ours:
        error.hint = f"functions of the project have no schema: {name.lower()}(…)"
    elif ours and error.nearest not in ours:
        said = f"functions of the project: {', '.join(ours[:12])}"
        error.hint = f"{error.hint}; {said}" if error.hint else said
    return error


def wrong_types(key: str, given: str, at: Location | None) -> SqlError | None:
    """Return the error for a call with other types than a function takes.

    Args:
        key: What the plan calls the function.
        given: The types, as DuckDB lists them.
        at: Where it is called.
    """
    function = catalogue.known().functions.get(key.lower())
    if function is None:
        return None
    return SqlError(
        f"{function.name}() takes {function.types.replace('?', '')}, not "
        f"({_shown(given) if function.aggregates else given})",
        at,
        "cast the arguments with CAST(… AS …)",
    )


def _shown(given: str) -> str:
    """Return types that an aggregate was given, the first one without its list."""
    first, comma, others = given.partition(", ")
    return first.removesuffix("[]") + comma + others


def _calls(tree: exp.Expr, at: Location | None) -> Iterator[tuple[exp.Anonymous, Function]]:
    for call in tree.find_all(exp.Anonymous):
        name = call.name.lower()
        method = isinstance(call.parent, exp.Dot) and call.parent.expression is call
        if method or name in binding.functions() | binding.aggregates():
            continue
        try:
            function = catalogue.named(name)
        except ModelError as error:
            place = error.at or at_line(at, line_of(call))
            raise ModelError(error.message, place, error.hint) from error
        if function is not None:
            yield call, function


def _check(call: exp.Anonymous, function: Function, at: Location | None) -> None:
    given, takes = len(call.expressions), len(function.parameters)
    if given != takes:
        many = f"{takes} argument{'' if takes == 1 else 's'}"
        raise SqlError(
            f"{function.name}() takes {many}, and {given or 'none'} {_is(given)} given",
            at,
            f"write {function.name}{function.types.replace('?', '')}",
        )
    first = call.expressions[:1] if function.aggregates else []
    others = call.expressions[len(first) :]
    if any(isinstance(each, _NOT_OF_AGGREGATES) for each in first) or any(
        isinstance(each, _NOT_BY_PLACE) for each in others
    ):
        raise SqlError(
            f"{function.name}() takes its arguments by their places, one value each",
            at,
            f"write {function.name}{function.types.replace('?', '')}",
        )
    if function.aggregates and any(each.find(exp.Column) for each in others):
        raise SqlError(
            f"{function.name}() takes one value of each row, and its other arguments are the same "
            "for all",
            at,
            "write constants behind the first argument",
        )
    if not function.deterministic:
        raise SqlError(
            f"the function '{function.name}' gives another value when a batch is replayed",
            at,
            "use a column of the record, or now(), which is pinned to the batch time",
        )


def _is(number: int) -> str:
    return "is" if number <= 1 else "are"
