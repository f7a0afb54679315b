"""The laws of transforms, over the one of this package that learns."""

import pyarrow as pa
import pytest
from plugin_package.functions import rounded_to
from plugin_package.ranks import Ranked

from kaflow_engine.testing.transform_laws import *  # noqa: F403
from kaflow_engine.testing.transform_laws import TransformSubject

COLUMNS = {"id": "BIGINT", "amount": "DOUBLE"}
ROWS = pa.table({"id": [1, 2, 3, 4], "amount": [2.5, None, 9.0, 4.0]})


@pytest.fixture
def subject() -> TransformSubject:
    state = {"amount": 7.0}
    return TransformSubject(kind=Ranked(), options={}, columns=COLUMNS, rows=ROWS, state=state)


def test_rows_see_what_was_learned_before(subject: TransformSubject) -> None:
    made = subject.transformed(subject.rows)
    assert made.rows["highest_amount_before"].to_pylist() == [7.0] * 4
    assert subject.state_after(subject.rows) == {"amount": 9.0}


def test_amounts_are_rounded() -> None:
    assert rounded_to(7.4, 5.0) == 5.0
