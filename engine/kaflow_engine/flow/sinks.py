"""The sinks of a flow: what rows are written to, and in which form.

Encoding belongs to the sink: the same rows may leave as JSON on one topic and as Avro on another.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from kaflow_engine.flow.origins.plugins import OptionParams
from kaflow_engine.model.columns import Column
from kaflow_engine.model.key_formats import KeyFormat
from kaflow_engine.model.names import topic_target
from kaflow_engine.model.record_columns import KEY_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class TableParams:
    """A table, partitioned by the event time of driving records, or by the start of windows."""

    name: str
    path: str
    """Its folder."""
    partition: Literal["hour", "day"]
    columns: tuple[Column, ...]
    """As the table keeps them."""
    interval: int
    """Milliseconds that a stream which is not behind lets rows gather before a batch."""
    grouped: bool = False
    """A row is that of a group and a window, which the key of its sink tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSink:
    """Rows as records of a topic."""

    type: Literal["topic"] = "topic"
    id: str
    inputs: tuple[str, ...]
    """Operators whose rows it takes."""
    exchange: bool
    """Rows travel once more, so that those of one key leave in order."""
    key: str | None
    topic: str
    format: str
    """A name of `model.formats`."""
    avro_schema: str | None = None
    avro_id: int | None = None
    key_in_value: bool = True
    """The key column is part of the value."""
    compacted: bool = False
    """The rows are those of a table: the last one of a key counts, and a null value deletes it."""
    coalesced: bool = False
    """Of a table one change leaves for each key and batch, also where more of them come."""
    passes_key: bool = False
    """A row that has no key makes a record without one, as its driving record was."""
    key_format: KeyFormat = "text"
    """Of a key that passes as bytes: the format in which it came."""
    key_schema: str | None = None
    """Of keys that are written as Avro."""
    key_schema_id: int | None = None
    headers: str | None = None
    """The column that has the headers of records, and is no part of the value."""
    operation: str | None = None
    """The header that says what a change does, `c`, `u` or `d`; deletes keep their row then."""
    cluster: str = ""
    """Where the topic is; empty: where topics are that name none."""

    @property
    def target(self) -> str:
        """What the topic is called among outputs, in front of it its cluster."""
        return topic_target(self.topic, self.cluster)

    @property
    def takes_bytes(self) -> bool:
        """Whether the key is that of rows, as bytes: no output column is."""
        return self.key == KEY_BYTES.name


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSink:
    """Rows of a table."""

    type: Literal["table"] = "table"
    id: str
    inputs: tuple[str, ...]
    """Operators whose rows it takes."""
    exchange: bool
    """Rows travel once more, so that those of one key leave in order."""
    key: str | None
    table: TableParams

    @property
    def target(self) -> str:
        """The name of the table."""
        return self.table.name


Setting = str | int | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorSink:
    """Rows, or changes of them, for a kind of sink that a file names."""

    type: Literal["connector"] = "connector"
    id: str
    inputs: tuple[str, ...]
    """Operators whose rows it takes."""
    exchange: bool
    """Rows travel once more, so that those of one key leave in order."""
    key: str | None
    kind: str
    """A name of `connectors.sinks`."""
    target: str
    """What the output is called; no topic or table has a `:` in its name."""
    settings: tuple[tuple[str, Setting], ...]
    """What the author says, as far as it is no secret."""
    columns: tuple[Column, ...]
    """Of the rows."""
    key_in_value: bool = True
    """The key column is one of the columns."""
    changes: bool = False
    """A row replaces the one of its key, and rows are deleted."""
    coalesced: bool = False
    """One change leaves for each key and batch, also where more of them come."""
    key_columns: tuple[str, ...] = ()
    """Columns that are the key together: `key` has the object of their texts."""


OPERATION = "$op"
"""A column of rows that are changes, and no part of their value: `i`, `u` or `d`."""

TOMBSTONE = "n"
"""The operation of a delete that has no row, where other deletes are written with theirs."""
OPERATIONS: Mapping[str, str] = {"i": "c", "u": "u", "d": "d", TOMBSTONE: "d"}
"""What the header of operations says of each."""

Sink = TopicSink | TableSink | ConnectorSink


@dataclass(frozen=True, slots=True, kw_only=True)
class SideOutput:
    """What sees the rows of a sink before they leave: a kind that a package offers."""

    target: str
    """That of the sink."""
    plugin: str
    options: OptionParams

    def __str__(self) -> str:
        return ", ".join([self.plugin, *(f"{name}: {value}" for name, value in self.options)])


def value_columns(sink: Sink, columns: Sequence[Column]) -> tuple[Column, ...]:
    """Return those columns of rows that a sink writes as value of a record, or as row."""
    match sink:
        case TableSink(table=table):
            own_key, headers = table.grouped, None
        case TopicSink(key_in_value=in_value, headers=headers):
            own_key = not in_value
        case ConnectorSink(key_in_value=in_value):
            own_key, headers = not in_value, None
        case _:
            assert_never(sink)
    beside = {OPERATION, headers, *([sink.key] if own_key else [])}
    return tuple(column for column in columns if column.name not in beside)


LETTER_COLUMNS = (
    *(Column(name, "VARCHAR") for name in ("pipeline", "topic")),
    Column("partition", "INTEGER"),
    Column("offset", "BIGINT"),
    Column("timestamp", "BIGINT"),
    *(Column(name, "VARCHAR") for name in ("phase", "error", "message")),
    Column("attempt", "INTEGER"),
    *(Column(name, "VARCHAR") for name in ("chain", "backfill")),
    *(Column(name, "BLOB") for name in ("key", "value")),
    Column("headers", "VARCHAR"),
)
"""Headers are a JSON list of names and values, these in base64."""


def letter_table(kind: str, connection: str, table: str) -> ConnectorSink:
    """Return the table of a database as what takes dead letters; it is created where it is not."""
    settings: tuple[tuple[str, Setting], ...] = (
        ("connection", connection),
        ("create", True),
        ("table", table),
    )
    return ConnectorSink(
        id="dead_letters",
        inputs=(),
        exchange=False,
        key=None,
        kind=kind,
        target="dead_letters",
        settings=settings,
        columns=LETTER_COLUMNS,
    )


def home_of(cluster: str, letters: ConnectorSink | str | None) -> dict[str, str]:
    """Return where runs are known and dead letters go, unless it is as it was always."""
    found = {"cluster": cluster, "letters": letters_called(letters) or ""}
    return {name: text for name, text in found.items() if text}


def letters_called(letters: ConnectorSink | str | None) -> str | None:
    """Return in a few words where dead letters go that have no topic; None: they may have one."""
    if not isinstance(letters, ConnectorSink):
        return letters and "files beside the state"
    settings = dict(letters.settings)
    return f"table '{settings['table']}' of {letters.kind} connection '{settings['connection']}'"
