"""The laws of formats, over the one of this package."""

import pyarrow as pa
import pytest
from plugin_package.logfmt import Logfmt

from kaflow_engine.testing.format_laws import *  # noqa: F403
from kaflow_engine.testing.format_laws import FormatSubject

COLUMNS = {"id": "BIGINT", "name": "VARCHAR", "paid": "BOOLEAN"}
ROWS = pa.table({"id": [1, 2, 3], "name": ["a", None, "of two words"], "paid": [True, False, None]})


@pytest.fixture
def subject() -> FormatSubject:
    return FormatSubject(plugin=Logfmt(), columns=COLUMNS, rows=ROWS, bad=b"no pairs at all")


def test_a_line(subject: FormatSubject) -> None:
    values = subject.encoded(subject.rows).to_pylist()
    assert values[0] == b"id=1 name=a paid=True"
    assert values[2] == b'id=3 name="of two words"'


def test_what_a_line_cannot_be_read_as(subject: FormatSubject) -> None:
    found = subject.decoded(pa.array([b"id=one name=a", b"name=", b"id=7 more=x"], pa.binary()))
    assert [(bad.row, bad.message) for bad in found.bad] == [(0, "column 'id' does not fit BIGINT")]
    assert found.table["id"].to_pylist() == [None, 7]
