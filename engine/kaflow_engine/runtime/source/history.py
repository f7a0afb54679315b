"""History files: which records of a topic lie in files; found once, and kept with the state."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from kaflow_engine.errors import SourceError
from kaflow_engine.flow.sources import HistoryParams
from kaflow_engine.state.log.batch_log import Offsets
from kaflow_engine.state.storage.store import Damaged, Store

_FILE = "history.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What a file holds of one partition."""

    file: str
    size: int
    """Bytes of the whole file."""
    partition: int
    first: int
    end: int
    """The offset after the last."""
    since: int
    """The least Kafka timestamp, in epoch milliseconds."""
    until: int
    """The greatest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicHistory:
    """The history of one topic."""

    topic: str
    source: HistoryParams
    base: str
    """The folder below which names of folders are columns."""
    schema: str
    """Of the files, as Spark's JSON."""
    pieces: tuple[Piece, ...]

    @property
    def starts(self) -> dict[int, int]:
        """The first offset of every partition that files hold records of."""
        found: dict[int, int] = {}
        for piece in self.pieces:
            found[piece.partition] = min(found.get(piece.partition, piece.first), piece.first)
        return found

    @property
    def ends(self) -> dict[int, int]:
        """The offset at which the topic takes over, of the same partitions."""
        found: dict[int, int] = {}
        for piece in self.pieces:
            found[piece.partition] = max(found.get(piece.partition, 0), piece.end)
        return found

    @property
    def holes(self) -> list[tuple[int, tuple[int, int]]]:
        """Partitions and ranges between files that none of them reaches into."""
        found: list[tuple[int, tuple[int, int]]] = []
        reached: dict[int, int] = {}
        for piece in sorted(self.pieces, key=lambda piece: (piece.partition, piece.first)):
            end = reached.get(piece.partition, piece.first)
            if piece.first > end:
                found.append((piece.partition, (end, piece.first)))
            reached[piece.partition] = max(end, piece.end)
        return found

    def since(self, time: int) -> dict[int, int]:
        """Return offsets before which no record is as late as `time`; only where any is."""
        found: dict[int, int] = {}
        for piece in self.pieces:
            if piece.until >= time:
                found[piece.partition] = min(found.get(piece.partition, piece.first), piece.first)
        return found

    def until(self, time: int) -> dict[int, int]:
        """Return offsets from which on no record is before `time`; only where any is not."""
        later = {piece.partition for piece in self.pieces if piece.until >= time}
        found = {p: start for p, start in self.starts.items() if p in later}
        for piece in self.pieces:
            if piece.partition in found and piece.since < time:
                found[piece.partition] = max(found[piece.partition], piece.end)
        return found


Histories = Mapping[str, TopicHistory]
"""By topic."""


def ends_of_histories(histories: Histories) -> Offsets:
    """Return where topics take over from their files."""
    return {topic: history.ends for topic, history in histories.items()}


def still_ahead(at: Offsets, histories: Histories) -> Offsets:
    """Return the ends of histories that are still being read, of those partitions only."""
    return {
        topic: ahead
        for topic, ends in ends_of_histories(histories).items()
        if (ahead := {p: end for p, end in ends.items() if at.get(topic, {}).get(p, 0) < end})
    }


def begin_in_histories(begin: Offsets, histories: Histories) -> Offsets:
    """Return where partitions begin: in files where there are some.

    Raises:
        SourceError: Files hold a partition that the topic does not have.
    """
    found = dict(begin)
    for topic, history in histories.items():
        if topic not in begin:
            continue
        for partition in history.starts:
            if partition not in begin[topic]:
                raise SourceError(
                    f"the history of topic '{topic}' at {history.source.path} has records of "
                    f"partition {partition}, and the topic has {len(begin[topic])} partitions",
                    hint="these are the files of another topic, or it was recreated; fix "
                    "history.path, or remove it",
                )
        found[topic] = {**begin[topic], **history.starts}
    return found


def save_histories(store: Store, histories: Histories) -> None:
    """Keep what was found with the state."""
    store.put(_FILE, _adapter().dump_json(dict(histories)))


def load_histories(store: Store) -> Histories:
    """Return what was found when the state began.

    Raises:
        Damaged: It cannot be read.
    """
    if not store.exists(_FILE):
        return {}
    try:
        return _adapter().validate_json(store.get(_FILE))
    except ValidationError as error:
        raise Damaged(f"'{_FILE}' is damaged", hint="restore this file from a backup") from error


@cache
def _adapter() -> TypeAdapter[Any]:
    return TypeAdapter(dict[str, TopicHistory])
