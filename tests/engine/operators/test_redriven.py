"""Records that are redriven: who sees them, and what number their next dead letter has."""

import pyarrow as pa
import pytest

from kaflow_engine.flow.records import RECORDS
from kaflow_engine.operators.source.decode import addressed


def records(*headers):
    rows = [
        {"topic": "t", "partition": 0, "offset": n, "timestamp": 0, "headers": each}
        for n, each in enumerate(headers)
    ]
    return pa.Table.from_pylist(rows, schema=RECORDS)


def header(value, key="kaflow.redrive"):
    return {"key": key, "value": value}


@pytest.mark.parametrize(
    ("headers", "offsets"),
    [
        ((None, None), [0, 1]),
        (([], [header(b"x", "trace")]), [0, 1]),
        (([header(b"2:mine")], [header(b"2:theirs")], None), [0, 2]),
        (([header(b"x", "trace"), header(b"3:theirs")], []), [1]),
        (([header(None)], [header(b"nonsense")]), []),
    ],
    ids=["no headers", "other headers", "for another", "among others", "unreadable"],
)
def test_a_pipeline_does_not_see_what_is_redriven_for_others(headers, offsets):
    found = addressed(records(*headers), "mine")
    assert found.column("offset").to_pylist() == offsets
