"""Nothing that comes from outside can become code: what could make it so is not there."""
# pyright: basic

import ast
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "jsonpickle", "code", "runpy"}
CALLS = {"eval", "exec", "compile", "__import__", "system", "popen", "unsafe_load", "full_load"}
ALLOWED = {
    # what the driver gives to tasks of its own, through Spark, which sends them their code as well
    ("engine/kaflow_engine/runtime/jobs/executor.py", "pickle"),
    ("engine/kaflow_engine/runtime/tasks/level_task.py", "pickle"),
    # and to one that stays, over a socket in a folder of their account
    ("engine/kaflow_engine/runtime/jobs/resident.py", "pickle"),
    # what a run gives to a preview that it has begun itself, through a pipe that no one else has
    ("engine/kaflow_engine/preview/served.py", "pickle"),
    ("engine/kaflow_engine/preview/child.py", "pickle"),
    # a law of sinks: a test packs what it has just made
    ("engine/kaflow_engine/testing/sink_laws.py", "pickle"),
    ("engine/kaflow_engine/testing/source_laws.py", "pickle"),
    # patterns
    *(("*", f"{module}.compile") for module in ("re", "regex")),
}


def test_nothing_turns_data_into_code():
    found = {
        (str(file.relative_to(ROOT)), name)
        for folder in ("engine", "kaflow_dagster", "definitions")
        for file in ROOT.joinpath(folder).rglob("*.py")
        for name in _risky(ast.parse(file.read_text()))
    }
    assert {(f, n) for f, n in found if (f, n) not in ALLOWED and ("*", n) not in ALLOWED} == set()


def _risky(tree: ast.Module) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found |= {name.name for name in names} & MODULES
            case ast.ImportFrom(module=str(module)):
                found |= {module} & MODULES
            case ast.Call(func=ast.Name(id=name)) if name in CALLS:
                found.add(name)
            case ast.Call(func=ast.Attribute(attr=name, value=ast.Name(id=of))) if name in CALLS:
                found.add(f"{of}.{name}")
            case ast.Call(func=ast.Attribute(attr="load", value=ast.Name(id="yaml"))):
                found.add("yaml.load")
            case ast.keyword(arg="shell", value=ast.Constant(value=True)):
                found.add("shell=True")
    return found
