import pytest

from kaflow_engine.state.reader import successor


@pytest.mark.parametrize(
    ("prefix", "after"),
    [(b"a", b"b"), (b"ab", b"ac"), (b"a\xff\xff", b"b"), (b"\xff", None), (b"", None)],
)
def test_successor_ends_a_prefix(prefix: bytes, after: bytes | None):
    assert successor(prefix) == after
