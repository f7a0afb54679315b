"""Phases that end as one partition, and behind them the partitions of a topic.

Partition 0 has the rows of all phases, one after the other. Partition n + 1 is partition n of the
topic, with its own offsets; it stands still at the handover until all rows of all phases are
committed.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from kaflow_engine.connectors.files.source.source import FilesSource
from kaflow_engine.connectors.hybrid.handover import in_front, keep_handover, kept_handover
from kaflow_engine.connectors.hybrid.reads import PhasesRead, TopicRead
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.source import TopicSource
from kaflow_engine.connectors.sources.contract import (
    KEPT,
    NamedSource,
    RangeRead,
    SourcePlace,
    StartPolicy,
)
from kaflow_engine.connectors.sources.kinds import source_kind
from kaflow_engine.connectors.sources.records import table_of
from kaflow_engine.errors import SourceUnfit
from kaflow_engine.flow.origins.files import FilesParams
from kaflow_engine.flow.origins.hybrid import HybridParams, PhaseParams
from kaflow_engine.state.storage.store import Damaged

_LOOK_S = 0.2
"""How long to wait for files that someone may still write to."""


class HybridSource:
    """Phases, and the topic that follows them.

    Args:
        params: Its settings.
        place: Where what is found is kept.
        connections: How each phase is reached.
        kafka: Where the topic is; None: there is none.
        registry: Where the schemas of its records are, where they are Avro.
    """

    def __init__(
        self,
        params: HybridParams,
        place: SourcePlace,
        connections: Sequence[Mapping[str, str]],
        kafka: KafkaSettings | None,
        registry: str = "",
    ) -> None:
        self._params, self._place, self._connections = params, place, connections
        self._kafka, self._registry = kafka, registry
        self._topic = TopicSource(kafka, params.topic) if kafka and params.topic else None
        self._handover: Mapping[int, int] | None = None
        self._opened: list[NamedSource] | None = None
        self._file = f"{KEPT}/{place.name}/phases.json"
        said: dict[str, Any] = {"ends": [], "handed": False}
        if place.store.exists(self._file):
            said = json.loads(place.store.get(self._file))
        self._ends: list[int] = said["ends"]
        """The offset behind each phase that has ended."""
        self._handed: bool = said["handed"]
        """Whether all rows of all phases were committed."""
        self._done = -1
        """The offset up to which rows were committed; -1: this process does not know it yet."""

    @property
    def bounded(self) -> bool:
        """Whether the last phase has ended, and nothing follows it."""
        return self._topic is None and self._all_ended

    @property
    def finite(self) -> bool:
        """Whether what it reads now ends: all of it, or the phases in front of the topic."""
        return self._topic is None or not self._is_handed

    def partitions(self) -> Sequence[int]:
        """Return that of the phases, and those of the topic."""
        return range(1 + (len(self._topic.partitions()) if self._topic is not None else 0))

    def latest(self) -> Mapping[int, int]:
        """Return the end of what was found of the phases, and of the topic once it is read."""
        found = {0: self._found()}
        self._hand_over()
        if self._topic is not None:
            ends = self._topic.latest() if self._is_handed else self._first_of_topic
            found |= {p + 1: at for p, at in ends.items()}
        return found

    def start(self, policy: StartPolicy) -> Mapping[int, int]:
        """Return the first row, and the handover or what the topic has left behind it; or the
        end of both."""
        if policy == "latest":
            found = self.latest()
            while self._place.whole and not self._all_ended:
                time.sleep(_LOOK_S)
                found = self.latest()
            return found
        if self._topic is None:
            return {0: 0}
        first, handover = self._topic.start("earliest"), self._first_of_topic
        return {0: 0} | {p + 1: max(at, handover.get(p, 0)) for p, at in first.items()}

    def reads(self, start: Mapping[int, int], end: Mapping[int, int]) -> Sequence[RangeRead]:
        """Return what tasks read ranges with.

        Raises:
            SourceError: The records are not those that they were.
        """
        parts = [
            (first, read)
            for number, first, low, high in self._within(start.get(0, 0), end.get(0, 0))
            for read in self._phases[number].reads({0: low}, {0: high})
        ]
        found: list[RangeRead] = []
        if parts:
            found.append(PhasesRead(source=self._place.name, parts=tuple(parts)))
        ranges = {p - 1: (at, end[p]) for p, at in start.items() if p and at < end[p]}
        if ranges:
            self._require_there({p: at for p, (at, _) in ranges.items()})
        for partition, (low, high) in sorted(ranges.items()):
            assert self._kafka is not None
            assert self._params.topic is not None
            found.append(
                TopicRead(
                    source=self._place.name,
                    kafka=self._kafka,
                    topic=self._params.topic,
                    partition=partition,
                    shown=partition + 1,
                    start=low,
                    end=high,
                    avro=self._params.avro,
                    registry=self._registry,
                )
            )
        return found

    def found(self, start: Mapping[int, int], end: Mapping[int, int]) -> Any:
        """Return the handover, where phases end, and what they must know of the range."""
        phases = {
            str(number): self._phases[number].found({0: low}, {0: high})
            for number, _, low, high in self._within(start.get(0, 0), end.get(0, 0))
        }
        handover = {str(p): at for p, at in self._first_of_topic.items()}
        ends = [at for at in self._ends if at <= end.get(0, 0)]
        return {"handover": handover, "ends": ends, "phases": phases}

    def know(self, found: Any) -> None:
        """Keep what another machine has found.

        Raises:
            Damaged: It is something else than what is known.
        """
        ends: list[int] = found["ends"]
        both = min(len(ends), len(self._ends))
        if ends[:both] != self._ends[:both]:
            raise Damaged(
                f"source '{self._place.name}': its phases end elsewhere than a batch says that is "
                f"read again: at {self._ends} and not at {ends}",
                hint="restore the whole directory from one backup",
            )
        if self._topic is not None:
            self._handover = keep_handover(self._place, found["handover"])
        if len(ends) > len(self._ends):
            self._ends = ends
            self._keep()
        for number, of_phase in found["phases"].items():
            self._phases[int(number)].know(of_phase)

    def forget(self, before: Mapping[int, int], now: int) -> None:
        """Let go of rows that were read; the topic begins when all of them were."""
        done, first = before.get(0, 0), 0
        for number, phase in enumerate(self._phases):
            phase.forget({0: max(0, done - first)}, now)
            if number >= len(self._ends):
                break
            first = self._ends[number]
        self._done = max(self._done, done)
        self._hand_over()

    def read(self, start: Mapping[int, int], end: Mapping[int, int]) -> pa.Table:
        """Return the records of ranges."""
        return table_of(self.reads(start, end))

    @property
    def _all_ended(self) -> bool:
        return len(self._ends) == len(self._params.phases)

    @property
    def _is_handed(self) -> bool:
        """Whether the topic is read; not by a state that was restored as it was before."""
        return self._handed and (self._done < 0 or self._done >= self._ends[-1])

    @property
    def _first_of_topic(self) -> Mapping[int, int]:
        """Where the topic takes over; found before any phase is read."""
        if self._topic is None:
            return {}
        if self._handover is None:
            last = self._connections[-1]
            self._handover = kept_handover(self._params, self._place, last, self._topic)
        return self._handover

    @property
    def _phases(self) -> list[NamedSource]:
        """The phases; the last one has a condition that follows from the handover."""
        if self._opened is None:
            params = in_front(self._params, self._first_of_topic)
            self._opened = [self._open(number, phase) for number, phase in enumerate(params)]
        return self._opened

    def _open(self, number: int, phase: PhaseParams) -> NamedSource:
        name, connection = f"{self._place.name}/{number}", self._connections[number]
        place = replace(self._place, name=name, connection=connection)
        if isinstance(phase, FilesParams):
            return FilesSource(phase, place, once=True)
        return source_kind(phase.type).open(phase, place)

    def _found(self) -> int:
        """Return the end of what was found of the phases, and look for more."""
        first = self._ends[-1] if self._ends else 0
        while not self._all_ended:
            phase = self._phases[len(self._ends)]
            there = phase.start("latest") if self._place.whole else phase.latest()
            end = first + there[0]
            if not phase.bounded:
                return end
            self._ends.append(end)
            self._keep()
            first = end
        return self._ends[-1]

    def _hand_over(self) -> None:
        """Let the topic begin, once all rows of all phases are committed."""
        if not self._handed and self._all_ended and self._done >= self._ends[-1]:
            self._handed = True
            self._keep()

    def _within(self, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield the phases of a range: number, first offset, and the range within the phase."""
        first = 0
        for number in range(len(self._params.phases)):
            until = self._ends[number] if number < len(self._ends) else end
            low, high = max(start, first), min(end, until)
            if low < high:
                yield number, first, low - first, high - first
            first = until

    def _require_there(self, start: Mapping[int, int]) -> None:
        """Check that the topic has what is read next of it: a reader would begin behind a gap."""
        assert self._topic is not None
        first = self._topic.start("earliest")
        for partition, at in sorted(start.items()):
            if at < first.get(partition, at + 1):
                raise SourceUnfit(
                    f"source '{self._place.name}': offset {at} of partition {partition} of topic "
                    f"'{self._params.topic}' comes next, and is gone",
                    hint="the topic's retention passed the pipeline; keep records longer "
                    "(retention.ms), and begin with a new `id:`",
                )

    def _keep(self) -> None:
        said = {"ends": self._ends, "handed": self._handed}
        self._place.store.put(self._file, json.dumps(said).encode())
