"""The laws of transforms, over the one of this package."""

import pyarrow as pa
import pytest
from plugin_package.transform import Converted

from kaflow_engine.testing.transform_laws import *  # noqa: F403
from kaflow_engine.testing.transform_laws import TransformSubject

COLUMNS = {"id": "BIGINT", "amount": "DOUBLE"}
ROWS = pa.table({"id": [1, 2, 3, 4], "amount": [2.5, None, -1.0, 4.0]})


@pytest.fixture
def subject() -> TransformSubject:
    return TransformSubject(kind=Converted(), options={"rate": 2}, columns=COLUMNS, rows=ROWS)


def test_amounts_are_converted(subject: TransformSubject) -> None:
    made = subject.transformed(subject.rows)
    assert made.rows["amount_converted"].to_pylist() == [5.0, 8.0]
    assert made.origin.to_pylist() == [0, 3]
    assert [(each.row, each.message) for each in made.failures] == [(2, "-1.0 is negative")]
