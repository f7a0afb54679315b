"""How authors declare functions: a decorator that says what a signature cannot say."""

from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Literal, TypeVar, cast, overload

from kaflow_engine.errors import Location, ModelError

MARK = "__kaflow_function__"
MARK_OF_AGGREGATES = "__kaflow_aggregate__"

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type[Any])
T = TypeVar("T", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A Python function and what its author says of it."""

    name: str
    version: object
    """As its author wrote it: it may be wrong."""
    deterministic: bool
    call: Callable[..., Any]
    """The function; the class of an aggregate."""
    at: Location
    module: str
    decorator: Literal["function", "aggregate"] = "function"


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

    return _marked(MARK, call, (name, version, deterministic))


@overload
def aggregate(of: C, /) -> C: ...


@overload
def aggregate(
    *, name: str | None = None, version: int = 1, deterministic: bool = True
) -> Callable[[C], C]: ...


def aggregate(
    of: C | None = None,
    /,
    *,
    name: str | None = None,
    version: int = 1,
    deterministic: bool = True,
) -> C | Callable[[C], C]:
    """Let the SQL of pipelines call a class as an aggregate of the rows of a group.

    Args:
        of: The class, where the decorator stands without brackets.
        name: What SQL calls it; None: the name of the class in lower case.
        version: Raise it whenever the aggregate gives other values than before.
        deterministic: It gives the same value for the same rows, today and when a batch runs again.
            Pipelines cannot call others.
    """

    return _marked(MARK_OF_AGGREGATES, of, (name, version, deterministic))


def _marked(mark: str, of: T | None, said: tuple[str | None, int, bool]) -> T | Callable[[T], T]:
    def decorate(each: T) -> T:
        setattr(each, mark, said)
        return each

    return decorate if of is None else decorate(of)


def aggregates_in(values: dict[str, Any]) -> tuple[Declared, ...]:
    """Return the aggregates among the values of a module, each once.

    Raises:
        ModelError: What is decorated is no class.
    """
    found: dict[type[Any], None] = {}
    for name, value in values.items():
        if isinstance(value, type) and MARK_OF_AGGREGATES in vars(value):
            found[value] = None
        elif callable(value) and MARK_OF_AGGREGATES in getattr(value, "__dict__", {}):
            raise ModelError(
                f"'{name}' is decorated with @aggregate, and is no class but "
                f"{type(value).__name__}",
                hint="write class, with the methods empty and add",
            )
    return tuple(_declared_class(each) for each in found)


def _declared_class(of: type[Any]) -> Declared:
    said = cast(tuple[str | None, object, bool], vars(of)[MARK_OF_AGGREGATES])
    name, version, deterministic = said
    first = next(
        (each.__code__ for each in vars(of).values() if isinstance(each, FunctionType)), None
    )
    return Declared(
        name=name or of.__name__.lower(),
        version=version,
        deterministic=deterministic,
        call=of,
        at=Location(first.co_filename, first.co_firstlineno) if first else Location(of.__module__),
        module=of.__module__,
        decorator="aggregate",
    )


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
