"""What stands in a case file, as frozen data."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from kaflow_engine.errors import Location
from kaflow_engine.model.durations import Duration
from kaflow_engine.model.files.tree import Node
from kaflow_engine.model.names import Filled, TargetName, Topic, refuse
from kaflow_engine.model.spec import Spec
from kaflow_engine.testing.cases.values import Json


def _instant(value: object) -> object:
    if not isinstance(value, str):
        return value
    if value.lstrip("-").isdigit():
        return int(value)
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        hint = "write it as 2026-01-01T00:00:00Z, or as epoch milliseconds"
        raise refuse("{value} is not a time", hint) from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


Instant = Annotated[int, BeforeValidator(_instant)]
"""Epoch milliseconds; a time without a zone is UTC."""


class GivenSpec(Spec):
    """One record; its value is read from the tree, where no digit is lost."""

    topic: Topic
    at: Instant
    key: str | None = None
    partition: int = Field(default=0, ge=0)
    offset: int | None = Field(default=None, ge=0)
    """None: the next one of its partition."""
    headers: dict[str, str | None] = Field(default={})
    value: object = None
    raw: str | None = None
    raw_base64: str | None = None


class AdvanceSpec(Spec):
    """An empty batch that moves batch time."""

    advance: Duration


class RowSpec(Spec):
    """One expected record; its value is read from the tree, where no digit is lost."""

    topic: TargetName | None = None
    """The topic, table or other output that it is in; None: the one output of the pipeline."""
    key: str | None = None
    value: object
    """None: the record deletes its key."""
    in_batch: int | None = Field(default=None, gt=0)
    at: Instant | None = None
    """The timestamp of the record; None: any."""
    headers: dict[str, str | None] | None = None
    """In their order; None: any."""


class LastSpec(Spec):
    """The last record that is expected of a key; its value is read from the tree, too."""

    topic: TargetName | None = None
    """The topic, table or other output that it is in; None: the one output of the pipeline."""
    key: str
    value: object


class LetterSpec(Spec):
    """One expected dead letter: where its record stood, and what went wrong."""

    topic: Topic
    offset: int
    phase: Filled
    partition: int | None = None
    """None: any."""


class CaseSpec(Spec):
    """A case; its pipeline, its configuration and its lists are read from the tree."""

    case: Filled
    pipeline: object
    config: object = None
    topics: dict[str, dict[str, Filled]] = Field(default={})
    """Column types of topics for which the pipeline declares none."""
    given: object = None
    start: Instant | None = None
    bounded: bool = False
    cuts: Literal["given"] | None = None
    """`given`: other cuts give other results, so the case only runs as it is written."""
    expect: object = None
    expect_table: object = None
    columns: tuple[Filled, ...] | None = None
    """Rows are compared in these members of their values only, and without their keys."""
    expect_raw: tuple[str, ...] | None = None
    expect_dead_letters: object = None
    expect_counters: dict[str, int] = Field(default={})
    expect_error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One record of a case."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    """Epoch milliseconds."""
    key: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    value: str | bytes | None
    """JSON text that the format of the topic encodes, bytes as they are, or nothing."""
    at: Location


@dataclass(frozen=True, slots=True)
class Advance:
    """An empty batch that moves batch time by so many milliseconds."""

    milliseconds: int


@dataclass(frozen=True, slots=True)
class Cut:
    """The end of a micro-batch."""


Item: TypeAlias = Given | Advance | Cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One record that a case expects, or one that was emitted."""

    topic: str
    key: str | None
    value: Json
    """None: the record deletes its key."""
    batch: int | None
    """The number of the batch that emits it; None where that does not matter."""
    at: int | None = None
    """Its timestamp; None where that does not matter."""
    headers: tuple[tuple[str, str | None], ...] | None = None
    """None where they do not matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A dead letter that a case expects, or one that was written."""

    topic: str
    partition: int | None
    offset: int
    phase: str

    def __str__(self) -> str:
        partition = "" if self.partition is None else f"[{self.partition}]"
        return f"{self.topic}{partition}@{self.offset} {self.phase}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A case of a case file, read but not yet planned."""

    spec: CaseSpec
    at: Location
    pipeline: Node
    """A name, a path, or a mapping."""
    topics_at: dict[tuple[str, str], Location]
    """Where the type of each (topic, column) stands."""
    config: Node | None
    items: tuple[Item, ...]
    expect: tuple[RowSpec, ...] | None
    values: tuple[Json, ...]
    """The value of each expected record."""
    table: tuple[tuple[LastSpec, Json], ...] | None
    """The last record of each key of each output, with its value; others are deleted or absent."""
    letters: tuple[Letter, ...] | None

    @property
    def name(self) -> str:
        """What the author calls it."""
        return self.spec.case

    @property
    def given(self) -> tuple[Given, ...]:
        """Its records."""
        return tuple(item for item in self.items if isinstance(item, Given))
