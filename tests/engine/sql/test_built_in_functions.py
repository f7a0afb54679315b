"""Functions of the engine: in a query of any pipeline, without their libraries, and on the page."""

import random
import re
from decimal import Context, Decimal
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import sqlglot

from kaflow_engine.duck.functions import built_in, catalogue, decimals
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


def test_decimals_are_those_of_python() -> None:
    chance, exact = random.Random(7), Context(prec=3000)
    texts = ["0", "-0", "1", "-1", "10", "0.1", "-0.10", "9.99", "-10"]
    for _ in range(300):
        whole = chance.randrange(10 ** chance.choice((1, 5, 80))) * chance.choice((1, -1))
        texts.append(f"{whole}e-{chance.choice((0, 3, 40))}")
    for a, b in zip(texts, chance.sample(texts, len(texts)), strict=True):
        x, y, m, n = Decimal(a), Decimal(b), _decimal(a), _decimal(b)
        assert (m < n, m == n, m > n) == (x < y, x == y, x > y), (a, b)
        for made, wanted in (
            (decimals.decimal_add(m, n), exact.add(x, y)),
            (decimals.decimal_sub(m, n), exact.subtract(x, y)),
            (decimals.decimal_mul(m, n), exact.multiply(x, y)),
            (decimals.decimal_mod(m, n), exact.remainder(x, y) if y else None),
        ):
            assert (None if made is None else Decimal(decimals.decimal_text(made))) == wanted


@pytest.mark.parametrize(
    ("text", "digits", "scale", "why"),
    [
        ("1_0", 9, 0, "'1_0' is no decimal number"),
        ("nan", 9, 0, "'nan' is no decimal number"),
        ("100", 4, 2, "'100' has more than 4 digits, 2 behind the point"),
        ("1", 1001, 0, "a decimal has 1 to 1000 digits, some of them behind the point"),
        ("1", 5, 6, "a decimal has 1 to 1000 digits, some of them behind the point"),
    ],
)
def test_what_is_no_decimal(text: str, digits: int, scale: int, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        decimals.decimal_of(text, digits, scale)
    with pytest.raises(ValueError, match="no decimal: write decimal_of"):
        decimals.decimal_text(b"1.5")


def _decimal(text: str) -> bytes:
    return decimals.decimal_of(text, 1000, 500)
