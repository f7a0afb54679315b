"""What a step remembers of the topics it joins."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.reference.pipeline import Topic
from tests.reference.records import Fact

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table as a join has it."""

    key: Key
    """Of the join."""
    value: Mapping[str, object]
    shown: Mapping[str, object]
    """What the chain reads of it beside its key: as long as that stays, it is no other row."""
    ts: int


class RowSide:
    """The rows of a table, of which several may have one join key."""

    def __init__(self) -> None:
        self._rows: dict[Key, TableRow] = {}

    def put(self, own: Key, row: TableRow | None) -> bool:
        """Note what the row of a key of the table is, None where there is none; tell whether it is
        another one."""
        before = self._rows.get(own)
        if row is None:
            return self._rows.pop(own, None) is not None
        if before is not None and (before.key, before.shown) == (row.key, row.shown):
            return False
        self._rows[own] = row
        return True

    def rows(self, key: Key, latest: int | None) -> list[tuple[Key, TableRow]]:
        """Return the rows with a join key that are not later than `latest`, each with its own key,
        in the order of these."""
        found = [(own, row) for own, row in self._rows.items() if row.key == key]
        kept = [(own, row) for own, row in found if latest is None or row.ts <= latest]
        return sorted(kept, key=lambda each: each[0])  # no part of a key is NULL


@dataclass(frozen=True, slots=True)
class Version:
    """One value of a dimension entry; None is a tombstone."""

    fact: Fact
    value: Mapping[str, object] | None


class EventSide:
    """The retained records of an event side."""

    def __init__(self) -> None:
        self._entries: dict[Key, list[Fact]] = {}

    def add(self, key: Key, fact: Fact) -> None:
        """Retain a record."""
        self._entries.setdefault(key, []).append(fact)

    def present(self, key: Key, kept: int, watermark: float | None) -> list[Fact]:
        """The records that had not expired at the start of the batch; they are kept for `kept`."""
        found = self._entries.get(key, [])
        return [fact for fact in found if not expired(fact.ts + kept, watermark)]


class DimensionSide:
    """The values of a dimension side, all versions kept.

    Entries are found by their key as text, since that is how a tombstone names them.
    """

    def __init__(self, topic: Topic) -> None:
        self._topic = topic
        self._versions: dict[Key, list[Version]] = {}

    def add(self, key: Key, version: Version) -> None:
        """Append a version in log order."""
        self._versions.setdefault(texts(key), []).append(version)

    def value(
        self, key: Key, driving_ts: int, watermark: float | None, latest: int | None
    ) -> Mapping[str, object] | None:
        """Look up the value for a driving record.

        Args:
            key: Join key.
            driving_ts: Event time of the driving record, for `as_of`.
            watermark: At the start of the batch.
            latest: A value with a greater `ts` counts as absent; None: no such limit.
        """
        versions = self._versions.get(texts(key), [])
        if self._topic.lookup == "as_of":
            version = self._as_of(versions, driving_ts, watermark)
        else:
            version = versions[-1] if versions else None
        if version is None or (latest is not None and version.fact.ts > latest):
            return None
        return version.value

    def _as_of(
        self, versions: list[Version], driving_ts: int, watermark: float | None
    ) -> Version | None:
        order = sorted(versions, key=lambda version: (version.fact.ts, version.fact.position))
        places = [place for place, version in enumerate(order) if version.fact.ts <= driving_ts]
        if not places:
            return None
        newer = order[places[-1] + 1 :]
        history = self._topic.history
        if newer and history is not None and watermark is not None:
            gone = any(version.fact.ts <= watermark - history for version in newer)
            return None if gone else order[places[-1]]
        return order[places[-1]]


def texts(key: Key) -> Key:
    """A key as DuckDB text."""
    return tuple(str(part).lower() if isinstance(part, bool) else str(part) for part in key)


def expired(due: int, watermark: float | None) -> bool:
    """Tell whether an entry that lives until `due` (`ts + ttl`) has expired."""
    return watermark is not None and watermark > due
