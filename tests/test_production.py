"""The page about production names tests that exist, and has promises for each kind of output."""
# pyright: basic

import ast
import re
from functools import cache
from typing import get_args

import pytest

from kaflow_engine.model.outputs.output_specs import OutputSpec
from kaflow_engine.model.specs import PipelineSpec
from tests.acceptance.crash_kinds import KINDS
from tests.page import DOCS
from tests.test_readme import ROOT

PROMISES = ("once", "again", "refused", "ends", "cannot be")
DETAILS = {
    *("type", "format", "key", "key_format", "schema_", "partition", "interval", "coalesce"),
    *(
        "cluster",
        "format_options",
        "key_schema",
        "every",
        "changes",
        "operation",
        "trace_context",
        "new_topic",
        "side_outputs",
    ),
}
"""Keys of an output that do not say where rows go; every other one is a kind of output."""
KILLED = "test_crash_points.py::"


def tables():
    """Return the tables of the page, each as a list of rows, each row as its cells."""
    text = DOCS.joinpath("production.md").read_text()
    found = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    return [
        [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
        for table in found
    ]


HAPPENS, PROMISED = ((head, rows) for head, _, *rows in tables())
ROWS = [*HAPPENS[1], *PROMISED[1]]
COLUMNS = PROMISED[0][1:-1]


@cache
def functions():
    """Return `file::function` of every test."""
    return {
        f"{file.name}::{node.name}"
        for file in ROOT.joinpath("tests").rglob("test_*.py")
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_row_names_tests(row):
    named = re.findall(r"`(.*?)`", row[-1])
    assert named
    assert set(named) <= functions()


def test_every_kind_of_output_has_a_column():
    targets = [name for name in OutputSpec.model_fields if name not in DETAILS]
    more = get_args(PipelineSpec.model_fields["delivery"].annotation)[1:]
    kinds = [*targets, *(f"topic, `{delivery}`" for delivery in more)]
    kinds += [f"backfill into a {target}" for target in targets]
    kinds += ["several outputs", "backfill into several outputs"]
    assert sorted(COLUMNS) == sorted(kinds)


def test_every_kind_of_output_is_killed():
    assert [kind.title for kind in KINDS.values()] == COLUMNS


@pytest.mark.parametrize("row", PROMISED[1], ids=[row[0] for row in PROMISED[1]])
def test_a_row_promises_what_its_tests_ask_for(row):
    for kind, promise in zip(KINDS.values(), row[1:-1], strict=True):
        assert promise.startswith(PROMISES)
        if KILLED in row[-1]:
            assert promise == ("again" if kind.delivery == "at_least_once" else "once")


def test_the_page_about_proof_names_files_that_exist():
    text = DOCS.joinpath("proof.md").read_text()
    named = re.findall(r"`(tests/[\w./*-]+)`", text)
    assert len(named) > 10
    assert [name for name in named if not list(ROOT.glob(name))] == []
