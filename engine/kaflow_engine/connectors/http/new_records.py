"""Which records of an answer are new: pure, and the same whenever a process was killed.

What is known is kept with the records that it was made of, in one frame of the journal.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from hashlib import sha256
from typing import Any, cast

from kaflow_engine.connectors.http.json_values import JsonValue
from kaflow_engine.errors import SourceUnfit
from kaflow_engine.flow.sources import CursorParams

_TIME = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?)(\.\d+)?(Z|[+-]\d\d(?::?\d\d)?)?")


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a value stands among others of its kind."""

    kind: str
    number: Decimal = Decimal(0)
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What has come already."""

    field: str | None = None
    """Of the cursor; None: there is none."""
    cursor: str | None = None
    """The greatest value of the field, as text; None: nothing has come."""
    is_number: bool = False
    seen: frozenset[str] = frozenset()
    """Marks of the records with that value; without a cursor, of the answer that last had new
    ones."""

    @staticmethod
    def of(note: bytes | None, cursor: CursorParams | None) -> "Known":
        """Return what a note says; one of another field or another kind of source: nothing."""
        field = None if cursor is None else cursor.field
        if note is None:
            return Known(field=field)
        said: dict[str, Any] = json.loads(note)
        if "field" not in said or said["field"] != field:
            return Known(field=field)
        return Known(
            field=field,
            cursor=said["cursor"],
            is_number=said["is_number"],
            seen=frozenset(said["seen"]),
        )

    @property
    def note(self) -> bytes:
        """It as a note."""
        said = {
            "field": self.field,
            "cursor": self.cursor,
            "is_number": self.is_number,
            "seen": sorted(self.seen),
        }
        return json.dumps(said).encode()


def new_records(records: Sequence[JsonValue], known: Known) -> tuple[tuple[JsonValue, ...], Known]:
    """Return the records of an answer that have not come yet, in their order, and what is known
    with them.

    With a cursor a record is new whose field is greater than all before, or as great as the
    greatest and another record than those. Without one a record is new that was not in the answer
    which last had new ones.

    Raises:
        SourceUnfit: The field of a record cannot be compared.
    """
    marks = [_mark(each.value) for each in records]
    if known.field is None:
        by_mark = dict(zip(marks, records, strict=True))  # in the order of their first places
        new = tuple(record for mark, record in by_mark.items() if mark not in known.seen)
        return new, Known(seen=frozenset(marks)) if new else known
    return _behind_cursor(records, marks, known, known.field)


def _behind_cursor(
    records: Sequence[JsonValue], marks: Sequence[str], known: Known, field: str
) -> tuple[tuple[JsonValue, ...], Known]:
    at = None if known.cursor is None else _place(known.cursor, is_number=known.is_number)
    new: list[JsonValue] = []
    greatest, text, seen = at, known.cursor, set(known.seen)
    taken: set[str] = set()
    for record, mark in zip(records, marks, strict=True):
        value = _field(record.value, field)
        place = _place_of(value, field)
        for other in (at, greatest):
            if other is not None and other.kind != place.kind:
                both = f"{other.kind} and {place.kind}"
                raise SourceUnfit(
                    f"'{field}' of records is {both}, which cannot be compared",
                    hint="name a field with values of one kind, or remove 'cursor'",
                )
        if mark in taken or (at is not None and place < at):
            continue
        if place == at and mark in known.seen:
            continue
        taken.add(mark)
        new.append(record)
        if greatest is None or greatest < place:
            greatest, text, seen = place, str(value), set[str]()
        if place == greatest:
            seen.add(mark)
    is_number = greatest is not None and greatest.kind == "a number"
    known = Known(field=field, cursor=text, is_number=is_number, seen=frozenset(seen))
    return tuple(new), known


def _field(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = cast(dict[str, Any], value).get(name) if isinstance(value, dict) else None
    return value


def _place_of(value: Any, field: str) -> Place:
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    if not is_number and not isinstance(value, str):
        raise SourceUnfit(
            f"a record has no '{field}' that is a number or a text, and so no place among others",
            hint="name a field that each record has, or remove 'cursor'",
        )
    return _place(str(value), is_number=is_number)


def _place(text: str, *, is_number: bool) -> Place:
    """Return what a value is compared by; times may have other zones and digits.

    >>> _place("2026-01-31T10:00:00.50+01:00", is_number=False)
    Place(kind='a time', number=Decimal('1769850000.50'), text='')
    """
    if is_number:
        return Place("a number", Decimal(text))
    if found := _TIME.fullmatch(text):
        whole, fraction, zone = found.groups()
        try:
            time = datetime.fromisoformat(f"{whole}{zone or '+00:00'}")
        except ValueError:  # of a month or an hour that there is not
            return Place("a text", text=text)
        return Place("a time", Decimal(round(time.timestamp())) + Decimal(fraction or 0))
    return Place("a text", text=text)


def _mark(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=lambda number: ["decimal", str(number)])
    return sha256(text.encode()).hexdigest()[:32]
