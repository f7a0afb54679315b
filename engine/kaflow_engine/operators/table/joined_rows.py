"""The rows that a join of tables makes of the rows of its sides, and how they change."""

import struct
from collections.abc import Iterator

from kaflow_engine.flow.tables import TableJoin
from kaflow_engine.operators.table.side_rows import LEFT, Meeting, Place, SideRow

_LENGTH = struct.Struct(">i")
_NONE = -1
_MARKS = (b"\0", b"\xff")
"""How lengths begin, and no text does."""

JoinedChange = tuple[bytes, SideRow | None, SideRow | None]
"""What tells a joined row apart, what it was and what it is."""


def changed(
    join: TableJoin,
    place: Place,
    meeting: Meeting,
    side: int,
    identity: bytes,
    row: SideRow | None,
) -> Iterator[JoinedChange]:
    """Change a row of a side; yield the changes of joined rows, each once.

    Args:
        join: Whose rows they are.
        place: Where.
        meeting: What is there; gets the change.
        side: LEFT or RIGHT.
        identity: Of the row.
        row: What it becomes; None: it is gone.
    """
    mine, others = meeting.rows[side], meeting.rows[1 - side]
    old, had = mine.get(identity), meeting.has(side)
    if row is not None:
        mine[identity] = row
    elif old is not None:
        del mine[identity]
    if _text(old) == _text(row):
        return
    has = meeting.has(side)
    if not others and join.sides[side].preserved:
        group = _group(join, place, side, identity, None)
        yield group, _joined(join, side, old, None), _joined(join, side, row, None)
    alone_now = had != has and join.sides[1 - side].preserved
    for name, other in others.items():
        group = _group(join, place, side, identity, name)
        before = None if old is None else _joined(join, side, old, other)
        after = None if row is None else _joined(join, side, row, other)
        if not alone_now:
            yield group, before, after
            continue
        lone, only = _group(join, place, side, None, name), _joined(join, side, None, other)
        if lone == group:
            yield group, before if had else only, after if has else only
        else:
            yield group, before, after
            yield lone, None if had else only, None if has else only


def called(join: TableJoin, group: bytes) -> str:
    """Return what people call a joined row."""
    if join.key == "join" and group[1:2] not in _MARKS:
        return f"row of join key {group[1:].decode()}"
    if group[1:2] not in _MARKS:
        return f"row {group[1:].decode()}"
    (length,) = _LENGTH.unpack_from(group, 1)
    head = 1 + _LENGTH.size
    end = head + max(length, 0)
    left, right = (part[1:].decode() or "NULL" for part in (group[head:end], group[end:]))
    return f"row {left}, {right}"


def _joined(
    join: TableJoin, side: int, row: SideRow | None, other: SideRow | None
) -> SideRow | None:
    """Return the row of a side together with one of the other; None: there is neither."""
    if row is None:
        if other is None:
            return None
        return SideRow(_packed(join, 1 - side, other.packed, None), other.ts)
    if other is None:
        return SideRow(_packed(join, side, row.packed, None), row.ts)
    return SideRow(_packed(join, side, row.packed, other.packed), max(row.ts, other.ts))


def _packed(join: TableJoin, side: int, row: str, other: str | None) -> str:
    """Return a packed row of a side and one of the other, None for NULLs, as one."""
    mine = row[1:-1]
    if other is not None:
        theirs = other[1:-1]
    else:
        theirs = ",".join(["null"] * len(join.sides[1 - side].columns))
    parts = (mine, theirs) if side == LEFT else (theirs, mine)
    return f"[{','.join(part for part in parts if part)}]"


def _group(
    join: TableJoin, place: Place, side: int, identity: bytes | None, other: bytes | None
) -> bytes:
    """Return what tells a joined row apart, behind a shard byte.

    Args:
        join: Whose row it is.
        place: Where its rows meet.
        side: That of `identity`.
        identity: Of its row; None: NULLs stand for it.
        other: Of the row of the other side.
    """
    left, right = (identity, other) if side == LEFT else (other, identity)
    match join.key:
        case "join" if not place.alone:
            return place.key
        case "left" if left is not None:
            return left
        case "right" if right is not None:
            return right
        case _:
            return _both(left, right)


def _both(left: bytes | None, right: bytes | None) -> bytes:
    """Return the identities of a pair as one, behind the shard byte of the first."""
    shard = (left or right or b"\0")[:1]
    length = _NONE if left is None else len(left)
    return shard + _LENGTH.pack(length) + (left or b"") + (right or b"")


def _text(row: SideRow | None) -> str | None:
    return None if row is None else row.packed
