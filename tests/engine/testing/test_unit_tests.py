"""Unit tests of property files run as cases, and mistakes in them are told."""
# pyright: basic

from pathlib import Path

import pytest

from kaflow_engine.errors import ModelError
from kaflow_engine.testing.cases.cases import run_case
from kaflow_engine.testing.cases.cuts import Cuts
from kaflow_engine.testing.cases.executor import executor_called
from kaflow_engine.testing.cases.files import find_cases, load_cases
from kaflow_engine.testing.cases.pipeline import Surroundings

SOURCES = """
sources:
  - name: shop
    tables:
      - {name: orders, columns: [{name: id, data_type: VARCHAR}, {name: u, data_type: VARCHAR}]}
      - name: users
        config: {dimension: true}
        columns: [{name: u, data_type: VARCHAR}, {name: country, data_type: VARCHAR}]
"""
MODEL = """
SELECT o.id, u.country FROM {{ source('shop', 'orders') }} o
LEFT JOIN {{ source('shop', 'users') }} u ON o.u = u.u
"""
NEXT = "SELECT id FROM {{ ref('facts') }} WHERE country = 'DE'"
TEST = """
unit_tests:
  - name: a user is known whichever is listed first
    model: facts
    given:
      - input: source('shop', 'orders')
        rows: [{id: a, u: x}, {id: b, u: y}]
      - input: source("shop", "users")
        rows: [{u: x, country: DE}]
    expect: {rows: [{id: a, country: @COUNTRY@}, {id: b, country: null}]}
  - name: only what is expected is compared
    model: german
    given: [{input: ref('facts'), rows: [{id: a, country: DE}, {id: b, country: FR}]}]
    expect: {rows: [{id: a}]}
"""
BAD = [
    ("model: facts", "modl: facts", "t.yml:4: unknown key 'modl'\n  hint: did you mean 'model'?"),
    (
        "source('shop', 'orders')",
        "source('shop', 'order')",
        "t.yml:6: unknown source 'shop.order'\n  hint: did you mean 'shop.orders'?",
    ),
    (
        "source('shop', 'orders')",
        "shop.orders",
        "t.yml:6: 'input': 'shop.orders' is no topic\n"
        "  hint: write source('name', 'table'), or ref('model')",
    ),
    (
        "ref('facts')",
        "ref('fact')",
        "t.yml:13: unknown model 'fact'\n  hint: did you mean 'facts'?",
    ),
]


@pytest.fixture
def project(tmp_path, monkeypatch):
    folder = tmp_path / "models"
    folder.mkdir()
    for name, text in {"s.yml": SOURCES, "facts.sql": MODEL, "german.sql": NEXT}.items():
        folder.joinpath(name).write_text(text)
    monkeypatch.chdir(folder)
    return folder


def results(folder, text):
    folder.joinpath("t.yml").write_text(text)
    assert find_cases([folder]) == (folder / "t.yml",)
    around = Surroundings(variables={})
    return {
        case.name: run_case(
            case, executor_called("local"), cuts=Cuts.of("given"), replay=False, around=around
        )
        for case in load_cases(Path("t.yml"), {})
    }


@pytest.mark.parametrize(("country", "passes"), [("DE", True), ("FR", False)])
def test_unit_tests_are_cases(project, country, passes):
    found = results(project, TEST.replace("@COUNTRY@", country))
    assert [result.passed for result in found.values()] == [passes, True]


@pytest.mark.parametrize(("old", "new", "error"), BAD)
def test_mistake(project, old, new, error):
    project.joinpath("t.yml").write_text(TEST.replace(old, new, 1).replace("@COUNTRY@", "DE"))
    with pytest.raises(ModelError) as caught:
        load_cases(Path("t.yml"), {})
    assert str(caught.value) == error
