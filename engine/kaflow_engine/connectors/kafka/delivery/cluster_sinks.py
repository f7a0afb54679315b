"""Topics of several clusters as one sink: rows of each are in transactions of their own."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.connectors.contract import Capabilities, FinishedBatch, TaskPart, Written
from kaflow_engine.connectors.kafka.delivery.topic_sink import TopicSink
from kaflow_engine.errors import StateError
from kaflow_engine.flow.records import DEAD_LETTER
from kaflow_engine.model.names import topic_target


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSinks:
    """Each cluster has markers for what was delivered to it: what one lacks, a replay delivers."""

    home: str
    """The cluster that has the dead letters."""
    sinks: Mapping[str, TopicSink]
    """By cluster."""

    @property
    def capabilities(self) -> Capabilities:
        """What topics promise."""
        return self.sinks[self.home].capabilities

    @property
    def same_rows(self) -> bool:
        """Whether a batch that runs again must have the rows it had."""
        return self.sinks[self.home].same_rows

    def again(self, tries: int, same_rows: bool) -> "ClusterSinks":
        """Return what writes a batch that was begun `tries` runs before."""
        again = {name: sink.again(tries, same_rows) for name, sink in self.sinks.items()}
        return replace(self, sinks=again)

    def write(self, part: TaskPart) -> Written:
        """Write the rows of schema OUTPUT, cluster by cluster.

        Raises:
            StateError: A batch of another plan has rows for a cluster that none is written to.
        """
        rows: Counter[str] = Counter()
        phases: dict[str, float] = {}
        found: list[Written] = []
        for cluster, some in self._by_cluster(part):
            if found:
                part.passing("next_cluster")
            written = self.sinks[cluster].write(replace(part, rows=some))
            rows.update({topic_target(t, cluster): n for t, n in written.rows.items()})
            for phase, spent in written.phases.items():
                phases[phase] = phases.get(phase, 0.0) + spent
            found.append(written)
        notes = [note for written in found for note in written.notes]
        return Written(rows=rows, notes=tuple(notes), phases=phases)

    def commit(self, batch: FinishedBatch) -> None:
        """Check in each cluster that a batch that runs again has the rows that it had."""
        for sink in self.sinks.values():
            sink.commit(batch)

    def delivered(self, batch: int) -> bool:
        """Tell whether any cluster has something of a batch, or of a later one."""
        return any(sink.delivered(batch) for sink in self.sinks.values())

    def finish(self) -> None:
        """Do nothing: every batch was visible when its tasks were done."""

    def _by_cluster(self, part: TaskPart) -> Iterator[tuple[str, pa.Table]]:
        """Yield rows, those of each cluster together and under the names of their topics."""
        targets = part.rows["topic"].combine_chunks().dictionary_encode()
        names: list[str] = targets.dictionary.to_pylist()
        places = [name.rpartition("/") for name in names]
        dead = pc.equal(part.rows["kind"], DEAD_LETTER)
        clusters = pa.array([cluster for cluster, _, _ in places], pa.string())
        of_rows = pc.if_else(dead, self.home, clusters.take(targets.indices))
        topics = pa.array([topic for _, _, topic in places], pa.string()).take(targets.indices)
        at = part.rows.schema.get_field_index("topic")
        called = part.rows.set_column(at, part.rows.schema.field(at), topics)
        there = pc.unique(of_rows).to_pylist()
        for cluster in sorted(there, key=lambda name: (name != self.home, name)):
            if cluster not in self.sinks:
                raise StateError(
                    f"batch {part.batch} has rows for cluster '{cluster}', to which the pipeline "
                    "writes no more",
                    hint="run it once more as it was, until it is caught up, then change it",
                )
            yield cluster, called.filter(pc.equal(of_rows, cluster))
