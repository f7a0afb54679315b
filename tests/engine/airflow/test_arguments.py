"""Mistakes of the author of a DAG: rows of `fixtures/errors/airflow`; Airflow is not needed."""
# pyright: basic

from pathlib import Path

import pytest
import yaml

from kaflow_engine.airflow import arguments
from kaflow_engine.errors import ModelError

ROWS = Path(__file__).parents[2] / "fixtures" / "errors" / "airflow" / "arguments.yaml"
CHECKS = {
    "arguments": arguments.checked_arguments,
    "project": arguments.checked_folder,
    "environment": arguments.checked_environment,
    "exit_codes": arguments.checked_exit_codes,
    "url": arguments.checked_url,
}


class Later:
    """A result of another task, as Airflow hands it to operators."""

    def iter_references(self):
        return iter(())


LATER = Later()


@pytest.mark.parametrize(
    "row", yaml.safe_load(ROWS.read_text()), ids=lambda row: row["title"].replace(" ", "-")
)
def test_a_mistake(row):
    (name,) = row.keys() & CHECKS.keys()
    with pytest.raises(ModelError) as raised:
        CHECKS[name](row[name])
    assert str(raised.value) == row["error"]


@pytest.mark.parametrize(
    ("name", "given", "taken"),
    [
        ("arguments", ("check", "orders"), ["check", "orders"]),
        ("arguments", ["run", ".", "--max-records=5"], ["run", ".", "--max-records=5"]),
        ("arguments", ["run", "{{ params.how }}"], ["run", "{{ params.how }}"]),
        ("arguments", ["run", LATER], ["run", LATER]),
        ("arguments", LATER, LATER),
        ("project", Path("/srv/shop"), "/srv/shop"),
        ("project", LATER, LATER),
        ("environment", {"A": "b", "C": LATER}, {"A": "b", "C": LATER}),
        ("exit_codes", {1: "skip", 16: "fail"}, {1: "skip", 16: "fail"}),
        ("url", "https://kaflow.example.com/", "https://kaflow.example.com"),
        ("url", "{{ var.value.stream }}", "{{ var.value.stream }}"),
    ],
)
def test_what_is_taken(name, given, taken):
    assert CHECKS[name](given) == taken
