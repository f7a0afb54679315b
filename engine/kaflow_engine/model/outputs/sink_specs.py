"""Outputs whose kind of sink a file names by `type`: the settings of each kind."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from kaflow_engine.model.durations import Duration
from kaflow_engine.model.names import Filled, TableName, public_url
from kaflow_engine.model.outputs.connected_specs import (
    ClickHouseSpec,
    ConnectedSinkSpec,
    IcebergSpec,
    PostgresSpec,
)
from kaflow_engine.model.outputs.connection_specs import public_headers
from kaflow_engine.model.outputs.output_specs import (
    ListedOutputSpec,
    ListedPart,
    OutputSpec,
    SinkSpec,
)
from kaflow_engine.model.outputs.sink_names import (
    folder_name,
    folder_part,
    ledger_table,
    plugin_options,
)
from kaflow_engine.model.plugin_options import PluginName
from kaflow_engine.model.spec import CHOICE, type_of

_OTHER = f"{CHOICE}topic or table"
_PLUGIN = f"{CHOICE}plugin"
_LOGIN = "write it under webhook.connections of the configuration"


class NamedSinkSpec(SinkSpec):
    """A sink that keeps nothing by which it could be called."""

    name: TableName = "rows"
    """What the output is called, beside its kind."""

    @property
    def called(self) -> str:
        """The name."""
        return self.name


class ConsoleSpec(NamedSinkSpec):
    """One line of JSON for each change, on the standard output of whoever runs the pipeline."""

    type: Literal["console"]
    lines: Literal["changes", "rows"] = "changes"
    """What a line is: a change with its output and operation, or a row alone."""
    sample_every: int = Field(default=1, gt=0)
    """Of so many lines in a row the last one is printed."""

    @property
    def settings(self) -> Mapping[str, str | int | bool | None]:
        """What the plan keeps."""
        lines = {} if self.lines == "changes" else {"lines": self.lines}
        return lines if self.sample_every == 1 else {**lines, "sample_every": self.sample_every}


class BlackholeSpec(NamedSinkSpec):
    """Nothing is kept: for measuring, and for trying a query."""

    type: Literal["blackhole"]


class FilesSpec(SinkSpec):
    """Files in a folder of the warehouse, or of a bucket."""

    type: Literal["files"]
    folder: Annotated[str, AfterValidator(folder_name)]
    """Its name; `warehouse` of the configuration says where it lies. Or `s3://<bucket>/<folder>`."""
    format: Literal["parquet", "json", "csv"] = "parquet"
    """Of each file: Parquet, one JSON object a line, or CSV with a line of names."""
    partition: Literal["hour", "day"] | None = None
    """Of event time (UTC): each has a folder of its own."""
    partition_by: tuple[Annotated[Filled, AfterValidator(folder_part)], ...] = ()
    """Columns: each of their values has a folder of its own, before those of `partition`."""
    interval: Duration = 10_000
    """How long rows are gathered, in ms, before they are written."""

    @property
    def called(self) -> str:
        """The folder."""
        return self.folder

    @property
    def is_shared(self) -> bool:
        """Others read the files."""
        return True

    @property
    def settings(self) -> Mapping[str, str | int | bool | None]:
        """What the plan keeps."""
        return {
            "folder": self.folder,
            "format": self.format,
            "partition": self.partition,
            "partition_by": ",".join(self.partition_by) or None,
            "interval": self.interval,
        }


class WebhookSpec(NamedSinkSpec, ConnectedSinkSpec):
    """Requests to an address, with rows as JSON."""

    type: Literal["webhook"]
    needs: ClassVar[str] = "url: https://…"
    url: Annotated[Filled, AfterValidator(partial(public_url, instead=_LOGIN))] | None = None
    """An address that everyone may know, instead of that of a connection."""
    batch: Annotated[int, Field(gt=0, le=10_000)] | None = None
    """Most rows of a request, which is then a list; None: a request is one row."""
    headers: Annotated[dict[str, str], AfterValidator(partial(public_headers, instead=_LOGIN))] = (
        Field(default={})
    )
    """Of each request, beside those of the connection; everyone may know them."""
    envelope: Literal["none", "metadata"] = "none"
    """Whether a row is itself, or stands in `{"metadata": {"op": "i"}, "data": …}`; `u` and `d` of
    rows that replace each other and go."""
    op_column: Filled | None = None
    """The column that says what `op` of the envelope is, and is then not in the row."""

    @property
    def is_reached(self) -> bool:
        """Whether no connection is needed."""
        return self.url is not None and "connection" not in self.model_fields_set

    @property
    def settings(self) -> Mapping[str, str | int | bool | None]:
        """What the plan keeps."""
        own: dict[str, str | int | bool | None] = {
            "url": self.url,
            "headers": json.dumps(self.headers, sort_keys=True) if self.headers else None,
            "envelope": None if self.envelope == "none" else self.envelope,
            "op_column": self.op_column,
        }
        said = {key: value for key, value in own.items() if value is not None}
        return {"connection": self.connection, "batch": self.batch, **said}


class CommandSpec(NamedSinkSpec, ConnectedSinkSpec):
    """Statements of DuckDB over the rows of each batch."""

    type: Literal["command"]
    needs: ClassVar[str] = "setup: ATTACH '…' AS shop"
    sql: Filled
    """One statement or several, which read the table `batch`; `{batch}` is its number."""
    ledger: Annotated[str, AfterValidator(ledger_table)] | None = None
    """A table for the number of the last batch, in the database that the statements write."""

    @property
    def settings(self) -> Mapping[str, str | int | bool | None]:
        """What the plan keeps."""
        return {"connection": self.connection, "sql": self.sql, "ledger": self.ledger}


class PluginSpec(NamedSinkSpec):
    """A kind of sink that an installed package offers."""

    type: PluginName
    """`<namespace>.<name>`: an entry point of the group `kaflow.sinks`."""
    options: Annotated[dict[str, str | int | bool | None], AfterValidator(plugin_options)] = Field(
        default={}
    )
    """What the plugin takes; it says itself what is right."""

    @property
    def settings(self) -> Mapping[str, str | int | bool | None]:
        """What the plan keeps."""
        return self.options


class ListedConsoleSpec(ListedPart, ConsoleSpec):
    """The console as one of several outputs."""


class ListedBlackholeSpec(ListedPart, BlackholeSpec):
    """Nothing, as one of several outputs."""


class ListedPostgresSpec(ListedPart, PostgresSpec):
    """A table of a database as one of several outputs."""


class ListedClickHouseSpec(ListedPart, ClickHouseSpec):
    """A table of a server as one of several outputs."""


class ListedIcebergSpec(ListedPart, IcebergSpec):
    """An Iceberg table as one of several outputs."""


class ListedWebhookSpec(ListedPart, WebhookSpec):
    """Requests as one of several outputs."""


class ListedCommandSpec(ListedPart, CommandSpec):
    """Statements as one of several outputs."""


class ListedPluginSpec(ListedPart, PluginSpec):
    """Rows for a plugin as one of several outputs."""


class ListedFilesSpec(ListedPart, FilesSpec):
    """Files as one of several outputs."""


_TYPES = (
    "console",
    "blackhole",
    "postgres",
    "clickhouse",
    "iceberg",
    "files",
    "webhook",
    "command",
)


def has_settings(kind: str) -> bool:
    """Tell whether a kind of sink has settings of its own, as `kafka` and `delta` have not.

    >>> has_settings("console"), has_settings("acme.tally"), has_settings("kafka")
    (True, True, False)
    """
    return kind in _TYPES or "." in kind


def _choice(value: object) -> str:
    """Return the tag of what an output is; an unknown `type` is reported with its key."""
    kind = type_of(value)
    if not isinstance(kind, str) or not has_settings(kind):
        return _OTHER
    return _PLUGIN if "." in kind else f"{CHOICE}{kind}"


AnyOutput = Annotated[
    Annotated[OutputSpec, Tag(_OTHER)]
    | Annotated[ConsoleSpec, Tag("\0console")]
    | Annotated[BlackholeSpec, Tag("\0blackhole")]
    | Annotated[PostgresSpec, Tag("\0postgres")]
    | Annotated[ClickHouseSpec, Tag("\0clickhouse")]
    | Annotated[IcebergSpec, Tag("\0iceberg")]
    | Annotated[FilesSpec, Tag("\0files")]
    | Annotated[WebhookSpec, Tag("\0webhook")]
    | Annotated[CommandSpec, Tag("\0command")]
    | Annotated[PluginSpec, Tag(_PLUGIN)],
    Discriminator(_choice),
]
"""What `output` may be."""

AnyListedOutput = Annotated[
    Annotated[ListedOutputSpec, Tag(_OTHER)]
    | Annotated[ListedConsoleSpec, Tag("\0console")]
    | Annotated[ListedBlackholeSpec, Tag("\0blackhole")]
    | Annotated[ListedPostgresSpec, Tag("\0postgres")]
    | Annotated[ListedClickHouseSpec, Tag("\0clickhouse")]
    | Annotated[ListedIcebergSpec, Tag("\0iceberg")]
    | Annotated[ListedFilesSpec, Tag("\0files")]
    | Annotated[ListedWebhookSpec, Tag("\0webhook")]
    | Annotated[ListedCommandSpec, Tag("\0command")]
    | Annotated[ListedPluginSpec, Tag(_PLUGIN)],
    Discriminator(_choice),
]
"""What each of `outputs` may be."""
