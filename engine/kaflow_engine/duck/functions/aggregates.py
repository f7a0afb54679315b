"""Aggregates in Python, with DuckDB types read off the annotations of their methods.

An aggregate is a function over the list of the values of a group. One that can merge is also a
chain of steps, so that a group keeps what it has come to instead of its rows.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any

from kaflow_engine.duck.functions.declared import Declared
from kaflow_engine.duck.functions.signature import (
    Function,
    Parameter,
    Steps,
    checked_version,
    hints_of,
    parameters_of,
    read_type,
    refused,
)
from kaflow_engine.errors import Location

Kept = dict[str, Any]
"""What a group keeps: its state `s`, whether there is one `k`, and values `m` to be taken away."""


def typed_aggregate(declared: Declared) -> Function:
    """Return an aggregate as a function of the list of its values.

    Raises:
        ModelError: Its name or version is none that SQL can have, or a method is missing, or has an
            annotation that is no type of SQL.
    """
    version = checked_version(declared)
    one = _instance(declared)
    add = _method(declared, one, "add", 2)
    if add is None or _method(declared, one, "empty", 0) is None:
        hint = "write def empty(self), and def add(self, state, value)"
        raise refused(declared, "has no method empty, or none called add", hint)
    state, value = (_typed(add, name, hints_of(add)) for name in parameters_of(add))
    said = _said(declared, one)
    returns = _returns(declared, one, add, value)
    function = Function(
        name=declared.name,
        version=version,
        parameters=(replace(value, type=f"{value.type}[]"), *said),
        returns=returns,
        vectors=False,
        deterministic=declared.deterministic,
        module=declared.module,
        at=declared.at,
        call=_over_rows(declared.call, value),
        aggregates=True,
    )
    if _method(declared, one, "merge", 2) is None:
        return function
    undoes = _method(declared, one, "subtract", 2) is not None
    return replace(function, steps=_steps(function, declared.call, state, value, undoes=undoes))


def _instance(declared: Declared) -> Any:
    try:
        return declared.call()
    except TypeError as error:
        raise refused(
            declared, f"cannot be made: {error}", "take static arguments in def init(self, …)"
        ) from error


def _method(declared: Declared, one: Any, name: str, takes: int | None = None) -> Declared | None:
    call = getattr(one, name, None)
    if call is None:
        return None
    code = getattr(call, "__code__", None)
    at = Location(code.co_filename, code.co_firstlineno) if code else declared.at
    method = replace(declared, call=call, name=f"{declared.name}.{name}", at=at)
    wrong = not callable(call) or inspect.iscoroutinefunction(call)
    if wrong or inspect.isgeneratorfunction(call):
        raise refused(method, "is no method, is async, or yields", "let it return its value")
    if takes is not None and len(list(parameters_of(method))) != takes:
        many = ("no arguments", "one argument", "two arguments")[takes]
        raise refused(method, f"does not take {many}", "see engine/docs/functions.md")
    return method


def _typed(method: Declared, name: str, hints: dict[str, Any]) -> Parameter:
    if name not in hints:
        raise refused(method, "does not say what it returns", "write -> float, or another type")
    found, vector = read_type(method, name, hints[name])
    if vector:
        raise refused(method, "takes or gives an Arrow array", "write the type of one value")
    return found


def _said(declared: Declared, one: Any) -> tuple[Parameter, ...]:
    """Return the arguments behind the first one, which are the same for all rows."""
    init = _method(declared, one, "init")
    if init is None:
        return ()
    hints = hints_of(init)
    return tuple(_typed(init, name, hints) for name in parameters_of(init))


def _returns(declared: Declared, one: Any, add: Declared, value: Parameter) -> Parameter:
    typer = _method(declared, one, "typer", 1)
    if typer is not None:
        kind = typer.call(value.type)
        return replace(_typed(typer, "return", {"return": Annotated[Any, kind]}), null=True)
    result = _method(declared, one, "result", 1)
    if result is None:
        return _typed(add, "return", hints_of(add))
    return _typed(result, "return", hints_of(result))


def _begun(of: Callable[[], Any], said: Sequence[Any]) -> Any:
    one = of()
    if said:
        one.init(*said)
    return one


def _ended(one: Any, state: Any) -> Any:
    result = getattr(one, "result", None)
    return state if result is None else result(state)


def _over_rows(of: Callable[[], Any], value: Parameter) -> Callable[..., Any]:
    def over_rows(values: list[Any] | None, *said: Any) -> Any:
        one = _begun(of, said)
        state = one.empty()
        for each in values or ():
            if each is not None or value.null:
                state = one.add(state, each)
        return _ended(one, state)

    return over_rows


def _steps(
    whole: Function, of: Callable[[], Any], state: Parameter, value: Parameter, *, undoes: bool
) -> Steps:
    kept = f"STRUCT(s {state.type}, k BOOLEAN, m {value.type}[])"
    said = whole.parameters[1:]
    some = Parameter(name="kept", type=kept, null=True)

    def step(name: str, takes: Parameter, gives: Parameter, call: Callable[..., Any]) -> Function:
        return replace(
            whole,
            name=f"{whole.name}__{name}",
            parameters=(takes, *said),
            returns=gives,
            call=call,
            aggregates=False,
        )

    def first(one: Any, *given: Any) -> Kept:
        begun = _begun(of, given)
        return {"s": begun.add(begun.empty(), one), "k": True, "m": []}

    def taken(one: Any, *given: Any) -> Kept:
        return {"s": None, "k": False, "m": [one]}

    def merged(parts: list[Kept | None] | None, *given: Any) -> Kept | None:
        return _merged(_begun(of, given), parts or ())

    def result(part: Kept | None, *given: Any) -> Any:
        begun = _begun(of, given)
        state = part["s"] if part is not None and part["k"] else begun.empty()
        for each in () if part is None else part["m"]:
            state = begun.subtract(state, each)
        return _ended(begun, state)

    return Steps(
        kept=kept,
        first=step("first", value, some, first),
        taken=step("taken", value, some, taken) if undoes else None,
        merged=step("merged", replace(some, type=f"{kept}[]"), some, merged),
        result=step("result", some, whole.returns, result),
    )


def _merged(one: Any, parts: Sequence[Kept | None]) -> Kept | None:
    """Merge what groups keep; what is to be taken away waits until there is a state."""
    there = [part for part in parts if part is not None]
    states = [part["s"] for part in there if part["k"]]
    minus = [each for part in there for each in part["m"]]
    if not states:
        return {"s": None, "k": False, "m": minus} if minus else None
    state, *others = states
    for other in others:
        state = one.merge(state, other)
    for each in minus:
        state = one.subtract(state, each)
    return {"s": state, "k": True, "m": []}
