"""When a session reports a stream to Dagster."""
# pyright: basic

from threading import Event

import dagster as dg

from kaflow_dagster.streams.session import _Heard, _reports
from kaflow_engine.api.status import Progress

BATCHES = (0, 0, 1, 1, 2)
"""The last batch of a stream, at each look."""


class Stream:
    """Runs as long as there are batches, and is its own reports."""

    def __init__(self):
        self.stop, self.heard, self.batches = Event(), _Heard(), list(BATCHES)

    def runs_after(self, seconds):
        if self.batches:
            batch = self.batches.pop(0)
            self.heard.newest["p"] = Progress(pipeline="p", state="running", batch=batch)
            return True
        return False

    def of(self, progress, *about):
        yield progress.batch

    def closed(self, progress):
        yield from ()


def test_the_first_batch_is_reported_at_once_and_the_last_at_the_end():
    stream = Stream()
    found = _reports(dg.build_op_context(), stream, stream.heard, {"p": stream})
    assert list(found) == [1, 2]
