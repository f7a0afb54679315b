"""The records of a pipeline's own topic `__kaflow.<pipeline id>`, as bytes.

The topic has one partition and is compacted. Keys and values are JSON objects with sorted keys:

========  ==================================================  ===================================
kind      key, besides `kind`                                 value
========  ==================================================  ===================================
epoch     (nothing: there is one)                             epoch, process
slot      id, the transactional id of a producer              epoch; null once it is fenced
marker    state, generation, sink, partition                  batch, epoch, rows, mark, maybe digest
batch     state, generation, batch                            the batch record; null once covered
========  ==================================================  ===================================

A marker says: the rows of this delivery partition are delivered up to and including `batch`. With
a `digest` it says so of the first `rows` rows of that batch, and that it has more of them. Where
delivery is not a transaction of Kafka, the driver writes one for the whole sink (`DRIVER`) before
it commits a batch.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

DRIVER = "driver"
"""In place of a sink's name: the marker is the driver's."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """The run that may write; a greater one takes over."""

    epoch: int
    process: str = ""
    """Tells the runs of one process from those of others."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A producer that may hold an open transaction."""

    id: str
    epoch: int | None
    """The run it belongs to, None once it is fenced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """What a sink was given of one delivery partition."""

    state: str
    generation: int
    sink: str
    partition: int
    batch: int | None
    """None: the state was dropped."""
    epoch: int = 0
    rows: int = 0
    """Rows and dead letters of the partition in that batch, so far; 0 in the driver's own."""
    mark: str = ""
    """`batch_mark` of that batch."""
    digest: str = ""
    """Checksum of these rows where the batch has more of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRecord:
    """A batch as the batch log recorded it, kept until a snapshot covers it."""

    state: str
    generation: int
    batch: int
    record: Mapping[str, Any] | None


ControlRecord = Epoch | Slot | Marker | BatchRecord
Pair = tuple[bytes, bytes | None]


@dataclass(slots=True)
class ControlView:
    """What the records read so far add up to."""

    epoch: int = 0
    process: str = ""
    """Of the newest epoch."""
    slots: dict[str, int] = field(default_factory=dict[str, int])
    markers: dict[tuple[str, int, str, int], Marker] = field(
        default_factory=dict[tuple[str, int, str, int], Marker]
    )
    batches: dict[tuple[str, int, int], Mapping[str, Any]] = field(
        default_factory=dict[tuple[str, int, int], Mapping[str, Any]]
    )

    def take(self, pairs: Iterable[Pair]) -> None:
        """Take further records, in log order."""
        # most are markers that later ones replace, so only the last of a key is decoded
        for key, value in dict(pairs).items():
            self._take(from_bytes(key, value))

    def _take(self, record: ControlRecord) -> None:
        match record:
            case Epoch(epoch, process):
                if epoch > self.epoch:
                    self.epoch, self.process = epoch, process
            case Slot(name, epoch):
                self.slots.pop(name, None)
                if epoch is not None:
                    self.slots[name] = epoch
            case Marker():
                place = (record.state, record.generation, record.sink, record.partition)
                self.markers.pop(place, None)
                if record.batch is not None:
                    self.markers[place] = record
            case BatchRecord(state=state, generation=generation, batch=batch, record=content):
                self.batches.pop((state, generation, batch), None)
                if content is not None:
                    self.batches[state, generation, batch] = content


def to_bytes(record: ControlRecord) -> Pair:
    """Return key and value of a record; the value is null where it removes one."""
    match record:
        case Epoch(epoch, process):
            return _json({"kind": "epoch"}), _json({"epoch": epoch, "process": process})
        case Slot(name, epoch):
            value = None if epoch is None else _json({"epoch": epoch})
            return _json({"kind": "slot", "id": name}), value
        case Marker():
            key = {
                "kind": "marker",
                "state": record.state,
                "generation": record.generation,
                "sink": record.sink,
                "partition": record.partition,
            }
            content = {
                "batch": record.batch,
                "epoch": record.epoch,
                "rows": record.rows,
                "mark": record.mark,
                **({"digest": record.digest} if record.digest else {}),
            }
            return _json(key), None if record.batch is None else _json(content)
        case BatchRecord(state=state, generation=generation, batch=batch, record=content):
            key = {"kind": "batch", "state": state, "generation": generation, "batch": batch}
            return _json(key), None if content is None else _json(content)


def from_bytes(key: bytes, value: bytes | None) -> ControlRecord:
    """Return the record that key and value hold.

    Raises:
        ValueError: They are not of the engine's making.
    """
    name: dict[str, Any] = json.loads(key)
    content: dict[str, Any] | None = None if value is None else json.loads(value)
    match name.pop("kind", None):
        case "epoch":
            return Epoch(**(content or {"epoch": 0}))
        case "slot":
            return Slot(name["id"], None if content is None else content["epoch"])
        case "marker":
            return Marker(**name, **(content or {"batch": None}))
        case "batch":
            return BatchRecord(**name, record=content)
        case kind:
            raise ValueError(f"unknown kind of record {kind!r}")


def _json(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":"), sort_keys=True).encode()
