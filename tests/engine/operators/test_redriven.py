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
    found, meant = addressed(records(*headers), "mine")
    assert found.column("offset").to_pylist() == offsets
    assert meant == {}


@pytest.mark.parametrize(
    ("headers", "meant"),
    [
        (([header(b"x", "kaflow.chain")],), {}),
        (([header(b"2:mine")], [header(b"2:mine"), header(b"x", "kaflow.chain")]), {1: "x"}),
        (([header(b"2:theirs")], [header(b"x", "kaflow.chain"), header(b"2:mine")]), {0: "x"}),
        (([header(b"2:theirs"), header(b"x", "kaflow.chain")], None), {}),
        (([header(b"2:mine"), header(None, "kaflow.chain")],), {}),
    ],
    ids=["not redriven", "one of them", "behind one for another", "for another", "unreadable"],
)
def test_a_redriven_record_says_for_which_chain_it_is(headers, meant):
    assert addressed(records(*headers), "mine")[1] == meant
