"""The topics that a run writes, rows and dead letters alike: their ends in tasks and driver."""

from collections import Counter
from dataclasses import dataclass, replace

from kaflow_engine.connectors.contract import Capabilities, FinishedBatch, TaskPart, Written
from kaflow_engine.connectors.kafka.delivery.deliver import deliver
from kaflow_engine.connectors.kafka.delivery.producer import SinkSettings
from kaflow_engine.connectors.kafka.delivery.undelivered import counts, require_same
from kaflow_engine.connectors.kafka.sink import KafkaTopics


@dataclass(frozen=True, slots=True)
class TopicSink:
    """Tasks write and commit in transactions; the driver checks what markers say."""

    settings: SinkSettings
    held: int = 0
    """The newest batch that any marker names."""

    @property
    def capabilities(self) -> Capabilities:
        """What topics promise."""
        exactly_once = self.settings.exactly_once
        return KafkaTopics().capabilities("exactly_once" if exactly_once else "at_least_once", {})

    @property
    def same_rows(self) -> bool:
        """Whether a batch that runs again must have the rows it had."""
        return self.settings.same_rows

    def again(self, tries: int, same_rows: bool) -> "TopicSink":
        """Return what writes a batch that was begun `tries` runs before."""
        return replace(self, settings=replace(self.settings, tries=tries, same_rows=same_rows))

    def write(self, part: TaskPart) -> Written:
        """Write rows of schema OUTPUT with their markers, in one transaction or in several."""
        begun = self.settings.has_begun(part.batch)
        notes = [{self._slots: list(counts(part.rows).items())}] if begun else []
        done = deliver(self.settings, part.batch, part.rows, part.passing, part.mark, part.alone)
        said = {"delivered": done.rows, "dead_letters": done.dead_letters}
        return Written(rows=done.by_topic, notes=(*notes, said), phases=done.phases)

    def commit(self, batch: FinishedBatch) -> None:
        """Check that a batch that runs again has the rows that were delivered of it."""
        same = self.settings.same_rows and batch.same_rows
        if same and self.settings.has_begun(batch.number):
            found: Counter[int] = Counter()
            for note in batch.notes:
                for slot, rows in note.get(self._slots, ()):
                    found[slot] += rows
            require_same(self.settings, batch.number, found, alone=True)

    def delivered(self, batch: int) -> bool:
        """Tell whether a marker names a batch, or a later one."""
        return self.held >= batch

    @property
    def _slots(self) -> str:
        """What a task calls the numbers of rows that it had for this cluster."""
        return f"slots {self.settings.kafka.cluster}".strip()

    def finish(self) -> None:
        """Do nothing: every batch was visible when its tasks were done."""
