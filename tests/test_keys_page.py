"""The page of all keys is what the command writes, and pages of connectors lead to it."""
# pyright: basic

import json
import re

import pytest
from click.testing import CliRunner

from kaflow_engine.cli.main import kaflow
from kaflow_engine.model.outputs.sink_specs import has_settings
from kaflow_engine.model.reference.keys import kinds
from kaflow_engine.model.sources.any_source import SOURCE_TYPES
from tests.page import DOCS

KINDS = kinds()
PAGES = sorted(DOCS.joinpath("connectors").glob("*.md"))


def asked(*options):
    done = CliRunner().invoke(kaflow, ["config", "keys", *options])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_page_is_what_the_command_writes():
    assert DOCS.joinpath("keys.md").read_text() == asked("--markdown"), (
        "run kaflow config keys --markdown > engine/docs/keys.md"
    )


def test_every_kind_is_there_and_says_what_each_key_means():
    found = {(kind.section, kind.type) for kind in KINDS}
    assert {("sources", name) for name in SOURCE_TYPES} <= found
    assert all(has_settings(kind) for section, kind in found - {("outputs", "all")}
               if section == "outputs")  # fmt: skip
    assert [(kind.type, key.name) for kind in KINDS for key in kind.keys if not key.about] == []


def test_keys_are_those_of_files_with_their_defaults():
    (http,) = json.loads(asked("http", "--json"))
    found = {
        key["name"]: (key["takes"], key["default"], key["is_required"]) for key in http["keys"]
    }
    assert found["url"] == ("text", "", True)
    assert found["interval"] == ("a duration", "1m", False)
    assert found["cursor.field"] == ("text", "", True)
    text = asked("files")
    assert re.search(r"^  format +parquet +Of each file", text, re.MULTILINE)


def test_of_an_unknown_type():
    done = CliRunner().invoke(kaflow, ["config", "keys", "postgre"])
    assert done.exit_code == 10
    assert "did you mean 'postgres'?" in done.output


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_of_connectors_lead_to_their_keys(page):
    if page.stem != "kafka":  # its keys are those of topics and of the cluster
        assert "](../keys.md#" in page.read_text()
