"""How authors declare functions: a decorator that says what a signature cannot say."""

from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any, TypeVar, cast, overload

from kaflow_engine.errors import Location, ModelError

MARK = "__kaflow_function__"

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A Python function and what its author says of it."""

    name: str
    version: object
    """As its author wrote it: it may be wrong."""
    deterministic: bool
    call: Callable[..., Any]
    at: Location
    module: str


@overload
def function(call: F, /) -> F: ...


@overload
def function(
    *, name: str | None = None, version: int = 1, deterministic: bool = True
) -> Callable[[F], F]: ...


def function(
    call: F | None = None,
    /,
    *,
    name: str | None = None,
    version: int = 1,
    deterministic: bool = True,
) -> F | Callable[[F], F]:
    """Let the SQL of pipelines call a function; its types are those of its annotations.

    Args:
        call: The function, where the decorator stands without brackets.
        name: What SQL calls it; None: as Python does.
        version: Raise it whenever the function gives other values than before.
        deterministic: It gives the same value for the same arguments, today and when a batch runs
            again. Pipelines cannot call others.
    """

    def mark(marked: F) -> F:
        setattr(marked, MARK, (name, version, deterministic))
        return marked

    return mark if call is None else mark(call)


def declared_in(values: dict[str, Any]) -> tuple[Declared, ...]:
    """Return the functions among the values of a module, each once.

    Raises:
        ModelError: What is decorated is no function.
    """
    found: dict[FunctionType, None] = {}
    for name, value in values.items():
        if not callable(value) or not isinstance(getattr(value, MARK, None), tuple):
            continue
        if not isinstance(value, FunctionType):
            raise ModelError(
                f"'{name}' is decorated with @function, and is no function but "
                f"{type(value).__name__}",
                hint="write def, with no other decorator; it may call what is wrapped or cached",
            )
        found[value] = None
    return tuple(_declared(each) for each in found)


def _declared(call: FunctionType) -> Declared:
    said = cast(tuple[str | None, object, bool], getattr(call, MARK))
    name, version, deterministic = said
    return Declared(
        name=name or call.__name__,
        version=version,
        deterministic=deterministic,
        call=call,
        at=Location(call.__code__.co_filename, call.__code__.co_firstlineno),
        module=call.__module__,
    )
