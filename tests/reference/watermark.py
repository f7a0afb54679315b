"""The watermark of section 1, over batches that read every partition to its end."""

from collections.abc import Mapping, Sequence

from tests.reference.pipeline import Topic

Partition = tuple[str, int]


class Watermark:
    """Follows the event topics of a pipeline; batch time where there are none."""

    def __init__(self, topics: Sequence[Topic]) -> None:
        self.value: int | None = None
        self._topics = topics
        self._greatest: dict[Partition, int] = {}
        self._idle_from: dict[Partition, int] = {}
        self._last_counted: int | None = None

    def advance(self, seen: Mapping[Partition, int], batch_time: int) -> None:
        """Move after a batch; `seen` is the greatest good ts of each partition in it."""
        if not self._topics:
            self._raise_to(batch_time)
            return
        for topic in self._topics:
            for part in _partitions(topic):
                self._note(topic, part, seen.get(part), batch_time)
        lows = [self._low(topic, batch_time) for topic in self._topics]
        counting = [low for low in lows if low != "idle"]
        if counting:
            known = [low for low in counting if isinstance(low, int)]
            if len(known) == len(counting):
                self._raise_to(min(known))
            self._last_counted = self.value
        elif (base := self._base()) is not None:
            self._raise_to(base + batch_time - max(self._idle_from.values()))

    def _note(self, topic: Topic, part: Partition, ts: int | None, batch_time: int) -> None:
        if ts is not None:
            self._greatest[part] = max(ts, self._greatest.get(part, ts))
        if ts is not None or part not in self._idle_from:
            self._idle_from[part] = batch_time + topic.idle_timeout

    def _low(self, topic: Topic, batch_time: int) -> int | str:
        awake = [part for part in _partitions(topic) if batch_time < self._idle_from[part]]
        if not awake:
            return "idle"
        if any(part not in self._greatest for part in awake):
            return "unknown"
        return min(self._greatest[part] for part in awake) - topic.lateness

    def _base(self) -> int | None:
        """The last value that counted; where all fell idle before there was one, what is known."""
        if self._last_counted is not None:
            return self._last_counted
        known = [
            self._greatest[part] - topic.lateness
            for topic in self._topics
            for part in _partitions(topic)
            if part in self._greatest
        ]
        return min(known, default=None)

    def _raise_to(self, value: int) -> None:
        self.value = value if self.value is None else max(value, self.value)


def _partitions(topic: Topic) -> list[Partition]:
    return [(topic.name, number) for number in range(topic.partitions)]
