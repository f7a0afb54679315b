"""Python functions: where the configuration says they are, and which of them a plan calls."""

from dataclasses import asdict
from pathlib import Path
from typing import Literal

from kaflow_engine.duck.functions.catalogue import Sources, called_in, named, require, use
from kaflow_engine.errors import Location
from kaflow_engine.flow.flow import Flow
from kaflow_engine.model.config import Config


def use_functions(config: Config) -> None:
    """Let queries call the functions that a configuration names.

    Raises:
        ModelError: A module cannot be imported, or a function in it is not as it should be.
    """
    at = Location(config.origin("functions")) if config.functions else None
    use(Sources(modules=function_modules(config), at=at))


def function_kind(name: str) -> Literal["function", "aggregate"] | None:
    """Tell what a name is among the functions of the project; None: none of them."""
    found = named(name)
    if found is None:
        return None
    return "aggregate" if found.aggregates else "function"


def function_modules(config: Config) -> tuple[str, ...]:
    """Return the modules that a configuration names; files by their whole path.

    Those that the configuration file names are beside it, others in the current folder.
    """
    written = config.file is not None and config.origin("functions").startswith(config.file)
    folder = Path(config.file).parent if config.file and written else Path()
    return tuple(
        str((folder / name).absolute()) if name.endswith(".py") else name
        for name in config.functions
    )


def require_functions(plan: Flow, modules: tuple[str, ...]) -> None:
    """Make the functions that a plan calls known to DuckDB, in a process that did not plan it.

    Raises:
        RunError: One of them is not there with the version and the types that the plan has.
        ModelError: A module cannot be imported.
    """
    if called := functions_called(plan):
        use(Sources(modules=modules))
        require(called)


def functions_called(plan: Flow) -> tuple[str, ...]:
    """Return what a plan calls the functions of the project that it calls."""
    return tuple(sorted(called_in(str(asdict(plan)))))
