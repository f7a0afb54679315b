"""The page for people who come from Streamling: its case runs, and it names what there is."""
# pyright: basic

import re

import pytest

from kaflow_engine.model.configuration.streamling.names import KNOWN
from kaflow_engine.model.streamling.specs import SINKS, SOURCES, TRANSFORMS
from kaflow_engine.model.streamling.sql.functions import FUNCTIONS
from kaflow_engine.testing.cases.cases import run_case
from kaflow_engine.testing.cases.executor import LocalExecutor
from kaflow_engine.testing.cases.files import load_cases
from kaflow_engine.testing.cases.pipeline import Surroundings
from kaflow_engine.testing.cases.report import report_lines
from tests.page import DOCS, blocks

PAGE = "from-streamling.md"
TEXT = DOCS.joinpath(PAGE).read_text()


def part(title):
    """Return the part of the page below a heading."""
    return TEXT.partition(f"## {title}\n")[2].partition("\n## ")[0]


def named(text):
    return set(re.findall(r"`([\w.]+)`", text))


def test_the_case_of_the_page(tmp_path):
    (text,) = blocks("yaml", PAGE)
    file = tmp_path / "page.yaml"
    file.write_text(text)
    (case,) = load_cases(file, {})
    result = run_case(case, LocalExecutor(), around=Surroundings(variables={}))
    assert result.passed, "\n".join(report_lines(result))


@pytest.mark.parametrize(
    ("title", "kinds"), [("Sources", SOURCES), ("Transforms", TRANSFORMS), ("Sinks", SINKS)]
)
def test_each_kind_of_node_has_a_row(title, kinds):
    rows = [line.split("|")[1].strip() for line in part(title).splitlines() if line[:3] == "| `"]
    assert sorted(rows) == sorted(f"`{kind}`" for kind in kinds)


def test_each_function_is_named():
    assert named(part("Functions")) >= {*FUNCTIONS, "uuid7"}


def test_each_setting_is_named():
    text = part("Settings")
    last = {name[-1].upper() for name in KNOWN} - {"LOG_FORMAT", "LOG_LEVEL"}
    assert {
        name
        for name in last
        if name not in text and name.replace("SCHEMA_REGISTRY_", "") not in text
    } == set()
