"""Dead letters as a person looks for them: which record, why, and whether it was tried again."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from kaflow_engine.duck.queries import query
from kaflow_engine.errors import ModelError
from kaflow_engine.model.letters import ABOUT, BACKFILL, CHAIN, COLUMNS, PREFIX

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """One dead letter."""

    letter: str
    """Where it is kept: partition and offset in the topic of dead letters, as `0:17`."""
    pipeline: str
    topic: str
    partition: int
    offset: int
    timestamp: int | None
    """Of the record, epoch milliseconds."""
    phase: str
    error: str
    message: str
    attempt: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    """Those of the record."""
    redriven: bool
    backfill: str | None
    """The range of the backfill that wrote it."""
    chain: str | None
    """Of several chains, the one that it is about."""

    def data(self) -> dict[str, Any]:
        """Return it as columns; bytes that are no text are shown with escapes."""
        found = {name: getattr(self, name) for name in COLUMNS}
        return found | {"key": text_of(self.key), "value": text_of(self.value)}


def chosen(letters: Sequence[Letter], where: str | None) -> list[Letter]:
    """Return the dead letters that meet a condition.

    Args:
        letters: All of them.
        where: SQL over COLUMNS; None: all.

    Raises:
        ModelError: The condition cannot be read.
    """
    if where is None:
        return list(letters)
    rows = [letter.data() | {"rn": n} for n, letter in enumerate(letters)]
    kinds = {"timestamp": pa.timestamp("ms", "UTC"), "partition": pa.int32(), "rn": pa.int64()}
    kinds |= {"offset": pa.int64(), "attempt": pa.int32(), "redriven": pa.bool_()}
    schema = pa.schema([pa.field(n, kinds.get(n, pa.string())) for n in (*COLUMNS, "rn")])
    table = pa.Table.from_pylist(rows, schema=schema)
    try:
        found = query(f"SELECT rn FROM rows WHERE ({where})", table)
    except duckdb.Error as error:
        raise ModelError(
            f"cannot read the condition {where!r}: {str(error).splitlines()[0]}",
            hint=f"write SQL over {', '.join(COLUMNS)}, such as --where \"phase = 'decode'\"",
        ) from error
    return [letters[n] for n in found.column("rn").to_pylist()]


def text_of(data: bytes | None) -> str | None:
    """Return bytes as text, with escapes for what is none."""
    return None if data is None else data.decode(errors="backslashreplace")


def letter_of(place: str, row: Mapping[str, Any], redriven: Collection[str] = ()) -> Letter | None:
    """Return the dead letter that a record holds; None: it is someone else's record.

    Args:
        place: Where the record is.
        row: Its `key`, `value` and `headers`.
        redriven: Places of those that were tried again.
    """
    headers: list[tuple[str, bytes | None]] = [(h["key"], h["value"]) for h in row["headers"] or ()]
    backfill, chain = (_popped(headers, name) for name in (BACKFILL, CHAIN))
    own = headers[-len(ABOUT) :]
    if [name for name, _ in own] != [f"{PREFIX}{name}" for name in ABOUT]:
        return None
    about = {name: (value or b"").decode() for name, (_, value) in zip(ABOUT, own, strict=True)}
    return Letter(
        letter=place,
        pipeline=about["pipeline"],
        topic=about["topic"],
        partition=int(about["partition"]),
        offset=int(about["offset"]),
        timestamp=int(about["timestamp"]) if about["timestamp"].lstrip("-").isdecimal() else None,
        phase=about["phase"],
        error=about["error"],
        message=about["message"],
        attempt=int(about["attempt"]),
        key=row["key"],
        value=row["value"],
        headers=tuple(headers[: -len(ABOUT)]),
        redriven=place in redriven,
        backfill=backfill,
        chain=chain,
    )


def _popped(headers: list[tuple[str, bytes | None]], name: str) -> str | None:
    """Take the last header off, where it is called so, and return its value."""
    if not headers or headers[-1][0] != name:
        return None
    return (headers.pop()[1] or b"").decode()
