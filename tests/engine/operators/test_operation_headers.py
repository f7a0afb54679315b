"""Headers that say what changes do: of rows that go and come, and of a sink that begins."""

import numpy as np
import pyarrow as pa

from kaflow_engine.formats.headers import entry_text
from kaflow_engine.operators.output.before_after import Moves
from kaflow_engine.operators.output.operation_headers import as_begun, with_operations

C, U, D = (entry_text("op", said) for said in "cud")
OWN = '["own","YQ=="]'


def test_a_row_under_another_key_is_created_there() -> None:
    texts = [None, f"[{OWN}]", "[]", None]
    moves = Moves(
        numbers=pa.array([0, 1, 1, 2], pa.int64()),
        rows=pa.table(
            {
                "out_key": pa.array([b"a", b"b", b"c", b"d"]),
                "value": pa.array([b"1", b"2", b"3", b"4"]),
                "headers": pa.array(texts, pa.string()),
            }
        ),
        comes=pa.array([True, False, True, True]),
        changes=pa.array(np.array([0, 1, 1, 2])),
        replaced=pa.array([False, True, True, True]),
    )
    found = with_operations("op", moves)
    assert found["headers"].to_pylist() == [f"[{C}]", f"[{D},{OWN}]", f"[{C}]", f"[{U}]"]
    assert found["value"].to_pylist() == [b"1", b"2", b"3", b"4"]
    assert found["rn"].to_pylist() == [0, 1, 1, 2]


def test_a_sink_that_begins_is_given_no_updates_and_no_deletes() -> None:
    rows = pa.table(
        {
            "value": pa.array([b"1", b"2", b"3", b"4"]),
            "payload": pa.array([f"[{U},{OWN}]", f"[{D}]", f"[{U}]", None], pa.string()),
        }
    )
    mine = pa.chunked_array([[True, True, False, True]])
    found = as_begun("op", mine, rows)
    assert found["payload"].to_pylist() == [f"[{C},{OWN}]", f"[{D}]", f"[{U}]", None]
    assert found["value"].to_pylist() == [b"1", None, b"3", b"4"]
