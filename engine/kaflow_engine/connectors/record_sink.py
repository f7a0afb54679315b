"""What takes the records of a run, rows for topics and dead letters, as a Protocol."""

from typing import Protocol

from kaflow_engine.connectors.contract import Sink, TaskSink


class RecordSink(TaskSink, Sink, Protocol):
    """The two ends of what takes records of a run, dead letters among them; picklable."""

    @property
    def same_rows(self) -> bool:
        """Whether a batch that runs again must have the rows it had."""
        ...

    def again(self, tries: int, same_rows: bool) -> "RecordSink":
        """Return what writes a batch that was begun `tries` runs before."""
        ...
