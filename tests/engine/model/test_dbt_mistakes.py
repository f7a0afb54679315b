"""Mistakes in dbt-style models and their property files, with the place and the way out."""

# pyright: basic

from pathlib import Path

import pytest

from kaflow_engine.model.configuration.load_config import load_config
from kaflow_engine.model.project import read_project
from tests.engine.model.test_dbt import SOURCES, project


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"m.sql": "SELECT 1\nFROM {{ source('shop', 'order') }}"},
            "m.sql:2: unknown source 'shop.order'\n  hint: did you mean 'shop.orders'?",
        ),
        (
            {"m.sql": "SELECT 1\nFROM\n{{ ref('n') }}"},
            "m.sql:3: unknown model 'n'\n  hint: known: m",
        ),
        (
            {"m.sql": "{{ config(\n  key='id',\n) }}\nSELECT {{ var('x') }}"},
            "m.sql:4: the variable 'x' is not set\n"
            "  hint: set it under vars: in kaflow.yaml, or give a default",
        ),
        (
            {"m.sql": "SELECT 1\n{{ env_var('X') }}"},
            "m.sql:2: the environment variable 'X' is not set\n  hint: set it, or give a default",
        ),
        (
            {"m.sql": "SELECT\n{% if %}"},
            "m.sql:2: the template fails: Expected an expression, got 'end of statement block'",
        ),
        (
            {"m.sql": "SELECT {{ that }}"},
            "m.sql:1: the template fails: 'that' is undefined",
        ),
        (
            {"m.sql": "SELECT\n{{ ''.__class__.__mro__ }}"},
            "m.sql:2: the template fails: access to attribute '__class__' of 'str' object is "
            "unsafe.",
        ),
        (
            {"m.sql": "\n{{ config(emision={'type': 'smart'}) }} SELECT id FROM t"},
            "m.sql:2: unknown key 'emision'\n  hint: did you mean 'emission'?",
        ),
        (
            {"m.sql": "{{ config(materialized='table', key='id') }} SELECT id FROM t"},
            "m.sql:1: output.key is only for a topic\n  hint: remove it, or write to a topic",
        ),
        (
            {"m.sql": "\n{{ config(group='eu-west', topic='t') }} SELECT id FROM t"},
            "m.sql:2: 'eu-west' is not a name for a group\n"
            "  hint: use letters, digits and '_', at most 200 of them; Dagster takes no others",
        ),
        (
            {"m.sql": "{{ config(materialized='files', topic='t') }} SELECT id FROM t"},
            "m.sql:1: unknown key 'topic'\n  hint: known: coalesce, folder, format, interval, key, "
            "partition, partition_by, side_outputs, type",
        ),
        (
            {
                "m.sql": "SELECT id FROM {{ ref('n') }}",
                "n.sql": "{{ config(materialized='files') }} SELECT id FROM t",
            },
            "m.sql:1: 'n' is a folder of files, which no stream can read\n"
            "  hint: read the topics that 'n' reads, or materialize it as a stream",
        ),
        (
            {
                "m.sql": "SELECT id FROM {{ ref('n') }}",
                "n.yaml": "name: n\nquery: SELECT id FROM t\noutput: {type: files, folder: n}\n",
            },
            "m.sql:1: 'n' is a folder of files, which no stream can read\n"
            "  hint: read the topics that 'n' reads, or materialize it as a stream",
        ),
        (
            {
                "m.sql": "SELECT id FROM {{ ref('n') }}",
                "n.yaml": "name: n\nquery: SELECT id FROM t\noutput: {type: console}\n",
            },
            "m.sql:1: 'n' is an output of type 'console', which no stream can read\n"
            "  hint: read the topics that 'n' reads, or materialize it as a stream",
        ),
        (
            {"m.sql": "{{ config(materialized='strem') }} SELECT id FROM t"},
            "m.sql:1: unknown materialization 'strem'\n  hint: did you mean 'stream'?",
        ),
        (
            {"m.sql": "SELECT 1 FROM {{ ref('n') }}", "n.sql": "SELECT 1 FROM {{ ref('m') }}"},
            "n.sql:1: models refer to each other in a circle: m → n → m",
        ),
        (
            {"m.sql": "SELECT id FROM t", "deep/m.sql": "SELECT id FROM t"},
            "m.sql:1: two models are called 'm': here and at {}/deep/m.sql\n"
            "  hint: rename one of them",
        ),
        (
            {"m.sql": "SELECT id FROM t", "x.yml": "models:\n  - name: n\n"},
            "x.yml:2: there is no model 'n'\n  hint: add n.sql below models/, or fix the name",
        ),
        (
            {"m.sql": "SELECT id FROM t", "x.yml": "models:\n  - name: m\n    colums: []\n"},
            "x.yml:3: unknown key 'colums'\n  hint: did you mean 'columns'?",
        ),
        (
            {
                "m.sql": "SELECT id FROM t",
                "x.yml": "models:\n  - name: m\n    data_tests: [[unique]]\n",
            },
            "x.yml:3: expected a test, found a list\n"
            "  hint: write - not_null, or - accepted_values: {{values: [a, b]}}",
        ),
        (
            {
                "m.sql": "SELECT id FROM t",
                "x.yml": "sources:\n  - name: a\n    tables:\n      - name: b\n        columns:\n"
                "          - {name: c, data_type: VARCHAR}\n          - {name: d}\n",
            },
            "x.yml:4: column 'd' has no data_type, others of its table have one\n"
            "  hint: give all columns a data_type, or none",
        ),
        (
            {"m.sql": "SELECT id FROM t", "x.yml": "models:\n  - name: m\n  - name: m\n"},
            "x.yml:3: model 'm' is described twice: here and at {}/x.yml:2\n"
            "  hint: remove one of them",
        ),
    ],
    ids=lambda value: value.split(": ", 1)[1].split("\n")[0] if isinstance(value, str) else "",
)
def test_mistakes(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    models = tmp_path / "models"
    project(models, {"s.yml": SOURCES, **files})
    found = read_project([tmp_path], load_config(None, {}), {})
    assert f"{models}/{expected.format(models)}" in [str(mistake) for mistake in found.mistakes]
