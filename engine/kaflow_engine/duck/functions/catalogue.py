"""The functions of this process: of the modules that its configuration names, of packages, and of
the engine.

What is imported is said by the configuration and by what is installed, and by nothing else: the
text of a pipeline is only compared with names that were found.
"""

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from threading import Lock
from types import ModuleType

from kaflow_engine.duck import binding
from kaflow_engine.duck.functions.aggregates import typed_aggregate
from kaflow_engine.duck.functions.built_in import BUILT_IN, module_of
from kaflow_engine.duck.functions.declared import aggregates_in, declared_in
from kaflow_engine.duck.functions.signature import Function, plain_name, typed
from kaflow_engine.errors import KaflowError, Location, ModelError, RunError

GROUP = "kaflow.udfs"
"""Entry points of packages: each names a module."""

CALLING = "Invalid Input Error: Python exception occurred while executing the UDF: "
"""The words of DuckDB begin so where Python raised; records may hold them, so only there."""

FAILED = "FunctionFailed: "
"""Stands then before the words of a function that raised."""

IN_PLANS = re.compile(r"\b([a-z][a-z0-9_]*?)__v([0-9]+)_[0-9a-f]{8}\b", re.IGNORECASE)
"""What plans call functions."""
_LISTED = re.compile(rf"({IN_PLANS.pattern})\((?P<list>ARRAY_AGG\()", re.IGNORECASE)
_CALLS = re.compile(IN_PLANS.pattern + r"(?=\()", re.IGNORECASE)
_QUOTED_OR_BRACKET = re.compile(r"""'[^']*'|"[^"]*"|[()]""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where functions come from."""

    modules: tuple[str, ...] = ()
    """Names of modules, or paths of Python files."""
    at: Location | None = field(default=None, compare=False)
    """Where that is said."""


@dataclass(slots=True)
class Known:
    """All functions that were ever found in a process: plans that run may call them."""

    functions: dict[str, Function] = field(default_factory=dict[str, Function])
    """By what plans call them."""
    changes: int = 0
    """How often they changed."""


@dataclass(slots=True)
class _Process:
    sources: Sources = field(default_factory=Sources)
    known: Known = field(default_factory=Known)


_finding = Lock()
_process = _Process()
# of the process, as DuckDB's database is: tasks, checks and planning share it


def use(sources: Sources) -> None:
    """Let this process find functions there from now on.

    Raises:
        ModelError: A module cannot be imported, or a function in it is not as it should be.
    """
    _process.sources = sources
    _make_known(_named(sources).values())


def modules_in_use() -> tuple[str, ...]:
    """Return the modules in which this process finds functions."""
    return _process.sources.modules


def found() -> dict[str, Function]:
    """Return the functions that SQL may call, by name; imports what packages offer.

    Raises:
        ModelError: As for `use`; or two functions have one name.
    """
    ours, others = _named(_process.sources), _of_packages()
    for name in sorted(ours.keys() & others.keys()):
        if not _same(ours[name], others[name]):
            raise _two_of_one_name(ours[name], others[name])
    return {**others, **ours}


def named(name: str) -> Function | None:
    """Return the function that SQL calls so: the engine's own is the last that is asked for.

    Raises:
        ModelError: As for `found`; or an optional part that it needs is not installed.
    """
    name = name.lower()
    return _named(_process.sources).get(name) or found().get(name) or _built_in(name)


def known() -> Known:
    """Return all functions that were found in this process."""
    return _process.known


def require(keys: Iterable[str]) -> None:
    """Find the functions that a plan calls.

    Args:
        keys: What the plan calls them.

    Raises:
        RunError: One of them is not here with the version and the types that the plan has.
        ModelError: As for `use`.
    """
    for key in keys:
        if key in _process.known.functions:
            continue
        name, version = shown(key)
        here = found().get(name) or _built_in(name)
        if key not in _process.known.functions:
            raise _missing(name, version, here)


def _missing(name: str, version: str, other: Function | None) -> RunError:
    if other is None:
        return RunError(
            f"the plan calls the function '{name}', and there is none",
            hint="name its module under `functions` in the configuration, or install its package",
        )
    return RunError(
        f"the plan calls the function '{name}' of version {version}, and here is version "
        f"{other.version}: {other.signature}",
        hint="a batch that was begun runs again as it was: start once with the function as it was",
    )


def shown(key: str) -> tuple[str, str]:
    """Return the name and the version of what plans call a function."""
    match = IN_PLANS.fullmatch(key)
    assert match is not None
    return plain_name(match[1].lower()), match[2]


def aggregate(key: str) -> Function | None:
    """Return the aggregate that plans call so."""
    found = _process.known.functions.get(key.lower())
    return found if found is not None and found.aggregates else None


def called_in(sql: str) -> Iterable[str]:
    """Return what plans call the functions that SQL calls, in lower case."""
    return dict.fromkeys(match[0].lower() for match in _CALLS.finditer(sql))


def plain(text: str) -> str:
    """Return SQL of a plan, or words about it, with functions called as the author calls them."""
    return IN_PLANS.sub(lambda call: plain_name(call[1].lower()), _without_lists(text))


def with_versions(text: str) -> str:
    """Return SQL of a plan with functions called by their names and versions."""
    return _CALLS.sub(lambda call: f"{plain_name(call[1].lower())}@{call[2]}", _without_lists(text))


def _without_lists(text: str) -> str:
    """Return SQL in which aggregates take values instead of the list of them."""
    at = 0
    while (found := _LISTED.search(text, at)) is not None:
        at = found.start("list")
        called = _process.known.functions.get(found[1].lower())
        if called is not None and not called.aggregates:
            continue
        end = _closing(text, found.end())
        text = f"{text[:at]}{text[found.end() : end]}{text[end + 1 :]}"
    return text


def _closing(text: str, start: int) -> int:
    """Return the place of the bracket that closes one which was opened before `start`, or the end
    of a text that is cut before it."""
    depth = 1
    for part in _QUOTED_OR_BRACKET.finditer(text, start):
        depth += {"(": 1, ")": -1}.get(part[0], 0)
        if depth == 0:
            return part.start()
    return len(text)


def _named(sources: Sources) -> dict[str, Function]:
    try:
        return _loaded(sources.modules)
    except KaflowError as error:
        raise ModelError(error.message, error.at or sources.at, error.hint) from error


@lru_cache(maxsize=64)
def _loaded(modules: tuple[str, ...]) -> dict[str, Function]:
    return _by_name([_imported(module) for module in modules])


@lru_cache(maxsize=1)
def _of_packages() -> dict[str, Function]:
    modules = sorted({each.module for each in entry_points(group=GROUP)})
    return _by_name([_imported(module) for module in modules])


@lru_cache(maxsize=len(BUILT_IN))
def _built_in(name: str) -> Function | None:
    return _by_name([module_of(name)])[name] if name in BUILT_IN else None


def _by_name(modules: Sequence[ModuleType]) -> dict[str, Function]:
    here: dict[str, Function] = {}
    for one in (each for module in modules for each in _declared_by(module)):
        other = here.setdefault(one.name, one)
        if not _same(other, one):
            raise _two_of_one_name(one, other)
    _make_known(here.values())
    return here


def _same(one: Function, other: Function) -> bool:
    """Tell whether two names of functions are those of one; classes are read once for each list."""
    both = one.aggregates and other.aggregates
    return one.call is other.call or (both and one.at == other.at)


def _declared_by(module: ModuleType) -> Iterator[Function]:
    values = vars(module)
    yield from map(typed, declared_in(values))
    yield from map(typed_aggregate, aggregates_in(values))


def _two_of_one_name(one: Function, other: Function) -> ModelError:
    return ModelError(
        f"there are two functions '{one.name}', the other one at {other.at}",
        one.at,
        f"give one of them another name: @{'aggregate' if one.aggregates else 'function'}"
        "(name='…')",
    )


def _make_known(functions: Collection[Function]) -> None:
    """Let plans call functions, in place of others of the same name, version and types."""
    known = _process.known
    with _finding:
        steps = (each for one in functions if one.steps is not None for each in one.steps.functions)
        for one in (*functions, *steps):
            before = known.functions.get(one.key)
            if before is None or before.call is not one.call:
                binding.declare(one.key, [each.type for each in one.parameters], one.returns.type)
                known.functions[one.key] = one
                known.changes += 1


def _imported(name: str) -> ModuleType:
    """Import a module by its name, or the Python file of that path.

    Raises:
        ModelError: It is not there, or raises while it is imported.
    """
    try:
        return _of_file(Path(name)) if name.endswith(".py") else import_module(name)
    except KaflowError:
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {error}".split("\n", 1)[0]
        raise ModelError(
            f"the functions of '{name}' cannot be imported: {said}",
            hint="install the package, put its folder into PYTHONPATH, or name the file: "
            "./functions.py",
        ) from error


def _of_file(path: Path) -> ModuleType:
    name = "kaflow_functions." + re.sub(r"\W", "_", str(path))
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    spec = spec_from_loader(name, SourceFileLoader(name, str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
