"""The pages about aggregates, tables and dynamic tables: their examples run as they stand there."""
# pyright: basic

from textwrap import indent

import pytest

from kaflow_engine.testing.cases.cases import run_case
from kaflow_engine.testing.cases.executor import LocalExecutor
from kaflow_engine.testing.cases.files import load_cases
from kaflow_engine.testing.cases.pipeline import Surroundings
from kaflow_engine.testing.cases.report import report_lines
from tests.page import blocks

pytestmark = pytest.mark.slow

EXAMPLES = blocks("yaml", "aggregates.md")


def test_there_are_at_least_five():
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize("text", EXAMPLES, ids=lambda text: text.splitlines()[0][8:])
def test_an_example_gives_what_the_page_says(text, tmp_path):
    check(text, tmp_path)


TABLES = blocks("yaml", "tables.md")


@pytest.mark.parametrize("number", range(0, len(TABLES), 2))
def test_an_example_of_tables_gives_what_the_page_says(number, tmp_path):
    pipeline, records = TABLES[number : number + 2]
    body = indent(pipeline, "    ") + indent(records, "  ")
    check(f"- case: tables\n  pipeline:\n{body}", tmp_path)


@pytest.mark.parametrize("text", blocks("yaml", "dynamic-tables.md"), ids=lambda text: text[8:30])
def test_an_example_of_dynamic_tables_gives_what_the_page_says(text, tmp_path):
    check(text, tmp_path)


def test_the_example_of_a_processor_gives_what_the_page_says(tmp_path):
    (text,) = blocks("yaml", "from-lenses.md")
    check(text, tmp_path)


def check(text, tmp_path):
    file = tmp_path / "example.yaml"
    file.write_text(text)
    (case,) = load_cases(file, {})
    result = run_case(case, LocalExecutor(), around=Surroundings(variables={}))
    assert result.passed, "\n".join(report_lines(result))
