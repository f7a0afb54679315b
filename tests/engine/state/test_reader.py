"""Reading many entries at once."""

from pathlib import Path

import pytest

from kaflow_engine.state.copies.rocks_open import open_copy
from kaflow_engine.state.log.changes import to_changes
from kaflow_engine.state.reader import StateRef


@pytest.mark.parametrize("names", [["a", "b", "c"], ["c", "a", "b", "a"], ["a", "a"], []])
def test_a_copy_gives_values_in_the_order_of_the_request(tmp_path: Path, names: list[str]) -> None:
    keys = [each.encode() for each in names]
    with open_copy(tmp_path / "0-0", StateRef("s", 1)) as copy:
        copy.apply(to_changes([b"a", b"b"], [b"1", b"2"]), 1)
        assert copy.get(keys) == [{b"a": b"1", b"b": b"2"}.get(key) for key in keys]
