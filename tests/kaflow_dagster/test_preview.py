"""A preview from Dagster's page: the rows are a table of the run."""
# pyright: basic

import json

import pytest

from kaflow_dagster.build import build_kaflow_defs

FILE = """
name: orders
sources:
  orders:
    type: files
    path: {folder}/in
    format: json
    settle: 0s
    columns: {{id: BIGINT, amount: DOUBLE}}
relations:
  large: {{query: "SELECT id, amount FROM orders WHERE amount > 5"}}
query: SELECT id FROM large
output: {{topic: ids, key: id}}
"""


@pytest.fixture
def job(tmp_path):
    tmp_path.joinpath("p.yaml").write_text(FILE.format(folder=tmp_path))
    tmp_path.joinpath("in").mkdir()
    records = ({"id": 1, "amount": 7}, {"id": 2, "amount": "x"}, {"id": 3, "amount": 1})
    tmp_path.joinpath("in/a.json").write_text("\n".join(map(json.dumps, records)))
    defs = build_kaflow_defs([tmp_path / "p.yaml"])
    return defs.get_repository_def().get_job("preview__orders")


def run(job, **options):
    config = {"ops": {"show__orders": {"config": {"from": "earliest", **options}}}}
    return job.execute_in_process(run_config=config, raise_on_error=False)


def test_rows_are_a_table_of_the_run(job):
    done = run(job, rows=3)
    assert done.success
    (event,) = [each for each in done.all_events if each.is_successful_output]
    found = event.step_output_data.metadata
    rows = [record.data for record in found["kaflow/rows"].records]
    letter = "decode: WrongType: column 'amount': \"x\" is not a DOUBLE"
    assert sorted(rows, key=str) == sorted(
        [
            {"node": "ids", "kind": "output", "op": "insert", "key": "1", "row": '{"id":1}'},
            {
                "node": "large",
                "kind": "relation",
                "op": "insert",
                "key": "",
                "row": '{"id":1,"amount":7.0}',
            },
            {"node": "orders/0@1", "kind": "dead letter", "op": "", "key": "", "row": letter},
        ],
        key=str,
    )
    assert found["kaflow/count"].value == 3


def test_a_node_that_is_not_there_fails_the_run(job):
    done = run(job, node="lage")
    assert not done.success
    assert "did you mean 'large'?" in str(done.all_events)
