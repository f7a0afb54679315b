"""Files of authors expand the variables that they may, and secrets in these are shown nowhere."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from kaflow_dagster.assets.views import view_project
from kaflow_engine import masking
from kaflow_engine.cli.main import kaflow
from kaflow_engine.errors import ModelError
from kaflow_engine.masking import without_secrets
from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.load_config import load_config
from kaflow_engine.model.files.variables import may_expand
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.model.project import load_project

PIPELINE = """
name: p
description: of ${NAME}
query: SELECT id, '${NAME}' AS k FROM t
output: {topic: o, key: id, format: json}
topics: {t: {columns: {id: VARCHAR}, format: json}}
"""
MODEL = """{{ config(materialized='stream', key='id') }}
SELECT id,
  '{{ env_var('NAME') }}' AS k
FROM {{ source('s', 't') }}
"""
SOURCE = """
version: 2
sources:
  - name: s
    tables: [{name: t, columns: [{name: id, data_type: VARCHAR}]}]
"""
CASES = """
- case: one
  pipeline: p
  given: [{topic: t, at: 2026-01-01T00:00:00Z, key: a, value: {id: "${NAME}"}}]
  expect: [{topic: o, key: a, value: {id: a}}]
"""


@pytest.fixture(autouse=True)
def _fresh(monkeypatch, tmp_path):
    monkeypatch.setattr(masking, "_known", set())
    monkeypatch.chdir(tmp_path)


def write(name, text):
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("name", "patterns", "may"),
    [
        ("KAFLOW_REGION", ("KAFLOW_*",), True),
        ("KAFLOW", ("KAFLOW_*",), False),
        ("kaflow_region", ("KAFLOW_*",), False),
        ("MY_KAFLOW_REGION", ("KAFLOW_*",), False),
        ("HOME", ("KAFLOW_*",), False),
        ("HOME", ("KAFLOW_*", "HOME"), True),
        ("HOMES", ("HOME",), False),
        ("TEAM_A_REGION", ("TEAM_*_REGION",), True),
        ("HOME", ("*",), True),
        ("HOME", (), False),
        # settings of the process, with its passwords, are never meant by accident
        ("KAFLOW__HTTP__TOKEN", ("KAFLOW_*",), False),
        ("KAFLOW_DEFAULT__HTTP__TOKEN", ("KAFLOW_*",), False),
        ("kaflow__http__token", ("*",), False),
        ("KAFLOW__VARS__REGION", ("KAFLOW__VARS__*",), True),
    ],
)
def test_patterns(name, patterns, may):
    assert may_expand(name, patterns) == may


@pytest.mark.parametrize("default", ["", ":-other"])
@pytest.mark.parametrize("value", ["set", None])
def test_another_variable_is_refused_set_or_not(monkeypatch, value, default):
    if value is not None:
        monkeypatch.setenv("NAME", value)
    file = write("p.yaml", PIPELINE.replace("NAME", "NAME" + default))
    for load in (lambda: load_pipeline(file), lambda: load_project([file], Config())):
        with pytest.raises(ModelError) as refused:
            load()
        assert str(refused.value) == (
            "p.yaml:3: the variable 'NAME' is not one that pipelines may use\n"
            "  hint: allow it by this line in kaflow.yaml: env: [KAFLOW_*, NAME]\n"
            "p.yaml:4: the variable 'NAME' is not one that pipelines may use\n"
            "  hint: allow it by this line in kaflow.yaml: env: [KAFLOW_*, NAME]"
        )


def test_the_line_to_add_allows_it(monkeypatch):
    monkeypatch.setenv("NAME", "abc")
    monkeypatch.setenv("KAFLOW_NAME", "def")
    write("kaflow.yaml", "env: [KAFLOW_*, NAME]\n")
    file = write("p.yaml", PIPELINE.replace("of ${NAME}", "of ${KAFLOW_NAME}"))
    (found,) = load_project([file], load_config(Path("kaflow.yaml"))).pipelines
    assert found.description == "of def"
    assert found.query == "SELECT id, 'abc' AS k FROM t"
    names = {"KAFLOW__ENV": "KAFLOW_*, NAME"}
    assert load_config(None, names).env == ("KAFLOW_*", "NAME")


def test_models_and_cases_are_files_of_authors_too(monkeypatch):
    monkeypatch.setenv("NAME", "a")
    write("models/m.sql", MODEL)
    write("models/s.yml", SOURCE)
    write("cases.yaml", CASES)
    write("pipelines/p.yaml", PIPELINE.replace("${NAME}", "x"))
    told = CliRunner().invoke(kaflow, ["validate", "models"]).output
    assert "models/m.sql:3: the variable 'NAME' is not one that pipelines may use" in told
    told = CliRunner().invoke(kaflow, ["test", "cases.yaml"]).output
    assert "cases.yaml:4: the variable 'NAME' is not one that pipelines may use" in told
    write("kaflow.yaml", "env: [NAME]\n")
    assert CliRunner().invoke(kaflow, ["validate", "models"]).exit_code == 0
    assert "1 passed" not in told
    told = CliRunner().invoke(kaflow, ["test", "cases.yaml"]).output
    assert "is not one that pipelines may use" not in told


def test_a_case_cannot_allow_itself_more(monkeypatch):
    monkeypatch.setenv("NAME", "a")
    write("p.yaml", PIPELINE)
    case = CASES.replace("pipeline: p", "pipeline: p.yaml\n  config: {env: [NAME]}")
    write("cases.yaml", case.replace("${NAME}", "a"))
    told = CliRunner().invoke(kaflow, ["test", "cases.yaml"]).output
    assert "p.yaml:3: the variable 'NAME' is not one that pipelines may use" in told


def test_the_configuration_itself_may_use_all_of_them(monkeypatch):
    monkeypatch.setenv("NAME", "abc")
    write("kaflow.yaml", "kafka: {consumer: {group: '${NAME}'}}\nenv: []\n")
    assert load_config(Path("kaflow.yaml")).kafka.consumer.group == "abc"


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("KAFLOW_DB", "postgresql://ann:Pw-9921-x@db/shop", "Pw-9921-x"),
        ("KAFLOW_DB", "postgresql://ann:Pw%2F9921@db/shop", "Pw/9921"),
        ("KAFLOW_DB_PASS", "Pass-4711-x", "Pass-4711-x"),
        ("KAFLOW_TOKEN_2", "Token-4711-x", "Token-4711-x"),
        ("KAFLOW_SIGNING_KEY", "Sign-4711-x", "Sign-4711-x"),
        ("KAFLOW_STORE", "AccountName=a;AccountKey=Acc-4711-x==;B=c", "Acc-4711-x=="),
        ("KAFLOW_ODBC", "Server=a;Pwd=Odbc-4711-x;B=c", "Odbc-4711-x"),
    ],
)
def test_credentials_in_allowed_ones_are_shown_nowhere(monkeypatch, name, value, secret):
    monkeypatch.setenv(name, value)
    file = write("p.yaml", PIPELINE.replace("NAME", name))
    wrong = write("w.yaml", PIPELINE.replace("NAME", name).replace("FROM t", "FRM t"))
    shown = [view_project([file, wrong], None).to_json()]
    for command in (
        *(["explain", "p.yaml"], ["explain", "p.yaml", "--json"], ["plan", "p.yaml", "--json"]),
        *(["validate", "w.yaml"], ["validate", "w.yaml", "--json"]),
    ):
        shown.append(CliRunner().invoke(kaflow, command).output)
        assert shown[-1]
    assert [text for text in shown if secret in text] == []
    assert "***" in shown[1]  # the query is drawn there
    assert secret not in without_secrets(f"a log line with {secret}")


@pytest.mark.parametrize("name", ["PWD", "KAFLOW_MONKEY", "KAFLOW_COMPASS", "KAFLOW_KEYSPACE"])
def test_other_values_stay_readable(monkeypatch, name):
    monkeypatch.setenv(name, "/a/readable-value-1")
    load_config(None)
    assert without_secrets("/a/readable-value-1") == "/a/readable-value-1"
