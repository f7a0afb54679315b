"""The public API: what is listed is documented, can be imported, and costs nothing before that."""

# pyright: basic

import ast
import json
import re
import subprocess
import sys
from importlib import import_module
from pkgutil import iter_modules

import pytest

import kaflow_engine.api
from kaflow_engine.api.lazy import names_of
from tests.page import DOCS, blocks

PAGE = DOCS.joinpath("api.md").read_text()
LAZY = [
    "kaflow_engine",
    *(f"kaflow_engine.api.{m.name}" for m in iter_modules(kaflow_engine.api.__path__)),
]
LAZY.remove("kaflow_engine.api.lazy")
PUBLIC = [*LAZY, "kaflow_dagster"]
HEAVY = {"pyspark", "duckdb", "confluent_kafka", "pyarrow", "deltalake", "dagster"}


def documented():
    """Return module to the names that the page has of it."""
    sections = re.findall(r"^## `(\S+)`\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return {
        module: [
            name
            for cell in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
            for name in re.findall(r"`(\w+)`", cell)
        ]
        for module, text in sections
    }


def test_the_page_has_every_module():
    assert sorted(documented()) == sorted(PUBLIC)


@pytest.mark.parametrize("module", PUBLIC)
def test_the_page_has_every_name_once(module):
    listed = import_module(module).__all__
    assert sorted(documented()[module]) == sorted(listed)
    assert len(set(listed)) == len(listed)


@pytest.mark.parametrize("module", PUBLIC)
def test_every_name_can_be_imported(module):
    found = import_module(module)
    assert all(getattr(found, name) is not None for name in found.__all__)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = found.no_such_name


@pytest.mark.parametrize("module", LAZY)
def test_types_and_the_list_agree(module):
    assert sorted(names_of(module)) == sorted(import_module(module).__all__)


def test_the_example_uses_the_list():
    (example,) = blocks("python", "api.md")
    used = [
        (node.module, alias.name)
        for node in ast.walk(ast.parse(example))
        if isinstance(node, ast.ImportFrom) and node.module.startswith("kaflow")
        for alias in node.names
    ]
    assert used
    assert all(name in documented()[module] for module, name in used)


def loaded(code):
    """Return which heavy packages are loaded after some code has run."""
    end = f"import json, sys; print(json.dumps(sorted({HEAVY!r} & set(sys.modules))))"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{end}"], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))


def test_importing_costs_nothing():
    assert loaded(f"import {', '.join(LAZY)}") == set()


def test_reading_a_project_needs_neither_spark_nor_kafka():
    code = "from kaflow_engine import check_project, explain, load_config, load_project"
    assert loaded(code) <= {"duckdb"}
