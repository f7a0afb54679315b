"""Names that are imported on first use: a public module costs nothing until it is needed."""

import ast
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.abc import InspectLoader
from importlib.util import find_spec


def lazily(module: str) -> Callable[[str], object]:
    """Return the `__getattr__` of a module: it imports what `if TYPE_CHECKING:` names there.

    So there is one list of where names come from, which type checkers read as well.
    """
    places = names_of(module)

    def get(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        source, attribute = places[name]
        return getattr(import_module(source), attribute)

    return get


def names_of(module: str) -> Mapping[str, tuple[str, str]]:
    """Return what a module exports lazily: name to the module and the name that it comes from."""
    spec = find_spec(module)
    assert spec is not None
    assert isinstance(spec.loader, InspectLoader)
    return {
        alias.asname or alias.name: (found.module, alias.name)
        for block in ast.parse(spec.loader.get_source(module) or "").body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for found in block.body
        if isinstance(found, ast.ImportFrom) and found.module
        for alias in found.names
    }
