"""What exit codes call for is what the page says; Airflow is not needed."""
# pyright: basic

import re
import subprocess
import sys

import pytest

from kaflow_engine.airflow.endings import VERDICT_COMMANDS, ending_of, stopped_early
from tests.page import DOCS

WORDS = {"fails": "fail", "is retried": "retry", "succeeds": "success"}
OTHERS = (3, 125, 137, -9, -15)
"""None of kaflow's: those of wrappers, shells and signals."""


def table():
    """Return code, a command, and what becomes of its task, as the page says."""
    part = DOCS.joinpath("airflow.md").read_text().split("## Exit codes")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([\d, ]+|others) \| (.+) \| (.+) \|$", part, re.MULTILINE)
    return [
        (code, command, next(word for text, word in WORDS.items() if task.startswith(text)))
        for codes, meaning, task in rows
        for code in (OTHERS if codes == "others" else map(int, codes.split(",")))
        for command in (("backfill",) if meaning.startswith("of other") else VERDICT_COMMANDS)
    ]


@pytest.mark.parametrize(("code", "command", "ending"), table())
def test_a_code(code, command, ending):
    assert ending_of(code, command, {}) == ending
    assert ending_of(code, command, {code: "skip"}) == "skip"


def test_every_code_of_kaflow_is_in_the_table():
    text = DOCS.joinpath("operations.md").read_text().split("## How commands end")[1]
    codes = {
        int(code) for code in re.findall(r"^\| (\d+) \|", text.split("\n## ")[0], re.MULTILINE)
    }
    assert codes == {code for code, _, _ in table()} - {*OTHERS}
    assert 16 in codes


@pytest.mark.parametrize(
    ("summary", "early"),
    [
        (None, True),
        ({"pipelines": [{"ending": "caught up"}, {"ending": "limit"}]}, False),
        ({"pipelines": [{"ending": "caught up"}, {"ending": "drained"}]}, True),
        ({"pipelines": [{"ending": "starting"}]}, True),
    ],
)
def test_a_run_that_was_stopped(summary, early):
    assert stopped_early(summary) is early


def test_it_needs_nothing_that_an_environment_of_airflow_lacks():
    names = ("arguments", "endings", "kaflow_process")
    code = (
        "import sys; before = set(sys.modules)\n"
        + "".join(f"import kaflow_engine.airflow.{name}\n" for name in names)
        + "found = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        + "print(found - sys.stdlib_module_names)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "{'kaflow_engine'}"
