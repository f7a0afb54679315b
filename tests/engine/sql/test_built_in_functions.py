"""Functions of the engine: in a query of any pipeline, without their libraries, and on the page."""

import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import sqlglot

from kaflow_engine.duck.functions import built_in, catalogue
from kaflow_engine.duck.functions.built_in import BUILT_IN
from kaflow_engine.errors import Location, ModelError
from kaflow_engine.sql.types.functions import with_functions
from kaflow_engine.testing.cases.cases import run_case
from kaflow_engine.testing.cases.executor import LocalExecutor
from kaflow_engine.testing.cases.files import load_cases
from kaflow_engine.testing.cases.pipeline import Surroundings
from kaflow_engine.testing.cases.report import report_lines
from tests.page import DOCS

CASES = Path(__file__).parents[2] / "fixtures" / "functions" / "built_in.yaml"


def test_a_pipeline_calls_them() -> None:
    (case,) = load_cases(CASES, {})
    result = run_case(case, LocalExecutor(), around=Surroundings(variables={}))
    assert result.passed, "\n".join(report_lines(result))


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_each_is_where_the_table_says(name: str) -> None:
    function = catalogue.named(name.upper())
    assert function is not None
    assert (function.name, function.module) == (name, BUILT_IN[name])


def test_without_their_libraries_the_way_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(name: str) -> ModuleType:
        if name.endswith("hashes"):
            raise ImportError("No module named 'Crypto'")
        return import_module(name)

    monkeypatch.setattr(built_in, "import_module", without)
    catalogue._built_in.cache_clear()
    tree = sqlglot.parse_one("SELECT a,\n  keccak256(b) FROM t", dialect="duckdb")
    with pytest.raises(ModelError) as caught:
        with_functions(tree, Location("p.yaml", 7))
    assert str(caught.value) == (
        "p.yaml:8: the function 'keccak256' needs the packages pycryptodome and xxhash, which are "
        "not installed\n  hint: pip install 'kaflow-dagster[hashing]'"
    )


def test_the_page_names_each() -> None:
    part = DOCS.joinpath("functions.md").read_text().partition("## Functions of the engine\n")[2]
    assert set(re.findall(r"`(\w+)\([\w, ]+\)`", part.partition("\n## ")[0])) == set(BUILT_IN)
