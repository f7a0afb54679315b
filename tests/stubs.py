"""What stubs of `typings/` declare, compared with the packages; it needs nothing but these."""

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
NAMED = (ast.FunctionDef, ast.ClassDef)


def stubs_of(package: str) -> list[Path]:
    """Return the stubs of a package."""
    return sorted(ROOT.joinpath("typings", package).rglob("*.pyi"))


def wrong_in(stub: Path) -> list[str]:
    """Return the names and parameters that only a stub has; a stub without any is wrong, too."""
    parts = stub.relative_to(ROOT / "typings").with_suffix("").parts
    module = importlib.import_module(".".join(part for part in parts if part != "__init__"))
    declared = list(_declared(ast.parse(stub.read_text()), module))
    missing = [name for name, _, there in declared if there is None]
    unknown = [
        f"{name}({', '.join(sorted(more))})"
        for name, node, there in declared
        if (more := _unknown(node, there))
    ]
    return [*missing, *unknown] if declared else ["nothing is declared"]


def _declared(stub: ast.Module, module: Any) -> Iterator[tuple[str, ast.AST, Any]]:
    """Yield what a stub declares, a method for each class that has it, with what is there."""
    classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
    for node in stub.body:
        if isinstance(node, ast.ImportFrom):
            for name in (alias.name for alias in node.names if alias.asname == alias.name):
                yield name, node, getattr(module, name, None)
        elif isinstance(node, NAMED) and not node.name.startswith("_"):
            there = getattr(module, node.name, None)
            yield node.name, node, there
            for member in _members(node, classes) if isinstance(node, ast.ClassDef) else ():
                yield f"{node.name}.{member.name}", member, getattr(there, member.name, None)


def _members(of: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> Iterator[ast.FunctionDef]:
    """Yield the methods of a class and those of its bases that are only in the stub."""
    yield from (
        node for node in of.body if isinstance(node, ast.FunctionDef) and node.name[0] != "_"
    )
    for base in of.bases:
        if isinstance(base, ast.Name) and base.id in classes and base.id.startswith("_"):
            yield from _members(classes[base.id], classes)


def _unknown(node: ast.AST, there: Any) -> set[str]:
    """Return the parameters that can be given by name in a stub, and not in what is there."""
    if not isinstance(node, ast.FunctionDef) or not callable(there):
        return set()
    try:
        parameters = inspect.signature(there).parameters
    except ValueError:  # compiled, and without a signature
        return set()
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return set()
    named = {each.arg for each in (*node.args.args, *node.args.kwonlyargs)}
    return named - set(parameters) - {"self", "cls"}
