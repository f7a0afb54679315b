"""Reads of the state are passed on, and timed."""

from collections.abc import Generator
from contextlib import contextmanager

from kaflow_engine.runtime.tasks.timed_state import TimedReader
from kaflow_engine.state.reader import Entries, Scanned


class _Told:
    def get(self, keys):
        return [b"v" + key for key in keys]

    def scan(self, prefixes):
        return Scanned([0], list(prefixes), [b"x"])

    def range(self, start, stop, most=None):
        return Entries([start], [b"%d" % (most or 0)])


def test_each_read_is_passed_on_inside_the_clock():
    spans: list[str] = []

    @contextmanager
    def timed() -> Generator[None]:
        spans.append("begin")
        yield
        spans.append("end")

    reader = TimedReader(_Told(), timed)
    assert reader.get([b"a", b"b"]) == [b"va", b"vb"]
    assert reader.scan([b"p"]) == Scanned([0], [b"p"], [b"x"])
    assert reader.range(b"s", None, 3) == Entries([b"s"], [b"3"])
    assert spans == ["begin", "end"] * 3
