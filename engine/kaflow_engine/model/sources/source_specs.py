"""Sources that are no topics: their kind is named by `type`, and each has settings of its own."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, Field

from kaflow_engine.model.durations import Duration
from kaflow_engine.model.names import Filled, refuse
from kaflow_engine.model.sources.source_spec import SourceSpec
from kaflow_engine.model.spec import Spec


def _listen(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise refuse("is not where requests can arrive", "write host:port, such as 127.0.0.1:8088")
    return text


def _of_url(text: str) -> str:
    if not re.fullmatch(r"/[A-Za-z0-9._~!$&'()*+,;=:@/-]*", text):
        raise refuse("is not the path of a URL", "write /orders")
    return text


def _header(text: str) -> str:
    if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", text):
        raise refuse("is not the name of a header", "write a name such as X-Signature")
    return text


HeaderName = Annotated[str, AfterValidator(_header)]


class FilesSourceSpec(SourceSpec):
    """Files that appear in a folder."""

    type: Literal["files"]
    path: Filled
    """A folder, or a pattern of names with `*`, `?`, `[…]` and `**`."""
    format: Literal["parquet", "json", "csv"] = "parquet"
    """Of each file: Parquet, one JSON value a line, or one line of CSV a record."""
    header: bool = False
    """The first line of each CSV file names the columns, and is no record."""
    settle: Duration = 2_000
    """How long nothing has written to a file, in ms, before it is taken as whole."""

    @property
    def about(self) -> str:
        """Where the files are."""
        return f"{self.format} files of {self.path}, each read once"

    @property
    def record_time(self) -> str:
        """All records of a file have one."""
        return "time when the file was written"

    @property
    def value_format(self) -> str:
        """Rows of Parquet are JSON values."""
        return "csv" if self.format == "csv" else "json"


class DrawnSpec(Spec):
    """How the values of one generated column are distributed."""

    distribution: Literal["sequence", "uniform", "normal", "choice", "skewed", "time"]
    """The number of the record; whole numbers between two, or numbers with two digits; the normal
    distribution; one of a list; one of so many, the first ones most often; the record's timestamp
    in epoch milliseconds."""
    min: float = Field(default=0, allow_inf_nan=False)
    max: float = Field(default=100, allow_inf_nan=False)
    """Of `uniform`, both included; of `skewed`, how many there are."""
    digits: int = Field(default=0, ge=0, le=9)
    """Behind the point of `uniform` and `normal`; 0: whole numbers."""
    mean: float = Field(default=0, allow_inf_nan=False)
    deviation: float = Field(default=1, gt=0, allow_inf_nan=False)
    of: tuple[str, ...] = ()
    """What `choice` chooses from."""
    prefix: str | None = None
    """Stands before `sequence`, `uniform` or `skewed`, which are texts then."""
    nulls: float = Field(default=0, ge=0, le=1)
    """The share of values that are NULL."""

    @property
    def column_type(self) -> str:
        """The type of its values."""
        if self.prefix is not None or self.distribution == "choice":
            return "VARCHAR"
        return "DOUBLE" if self.digits else "BIGINT"


class GeneratorSourceSpec(SourceSpec):
    """Made-up records: record n is a function of the seed and n."""

    type: Literal["generator"]
    rate: float = Field(default=10, gt=0, le=1_000_000, allow_inf_nan=False)
    """Records per second, by their timestamps."""
    seed: int = 0
    records: int | None = Field(default=None, gt=0)
    """How many there are; None: no end."""
    start: AwareDatetime | None = None
    """The timestamp of the first record; None: when the pipeline first starts."""
    values: dict[str, DrawnSpec]
    """The columns of its records, and how they are distributed."""

    @property
    def about(self) -> str:
        """How many records there are."""
        most = "without end" if self.records is None else f"{self.records:,} in all"
        return f"made-up records, {self.rate:g} a second, {most}, of seed {self.seed}"

    @property
    def record_time(self) -> str:
        """It follows from the rate."""
        return "time when the record appears at its rate"

    @property
    def typed(self) -> dict[str, str]:
        """As declared, else as their values are."""
        own = {name: drawn.column_type for name, drawn in self.values.items()}
        return own if self.columns is None else self.columns


class SignatureSpec(Spec):
    """How senders show that they know a secret: the HMAC (SHA-256) of the body, in hexadecimal."""

    secret: Filled
    """One of `secrets` in the configuration."""
    header: HeaderName = "X-Hub-Signature-256"
    prefix: str = "sha256="
    """Stands before the digits."""


class WebhookSourceSpec(SourceSpec):
    """Requests that others send: each is a record, and is answered when it is written down."""

    type: Literal["webhook"]
    listen: Annotated[str, AfterValidator(_listen)]
    """Host and port."""
    path: Annotated[str, AfterValidator(_of_url)] = "/"
    signature: SignatureSpec | None = None
    idempotency_header: HeaderName = "Idempotency-Key"
    """Tells a request that is sent again from a new one, for a day."""
    max_bytes: int = Field(default=1_048_576, gt=0)
    """Of the body of a request."""
    max_connections: int = Field(default=1_000, gt=0)
    max_backlog: int = Field(default=1_000_000, gt=0)
    """Records that may wait for the pipeline; beyond it, senders are told to wait."""

    @property
    def about(self) -> str:
        """Where requests arrive."""
        signed = "signed " if self.signature else ""
        return f"{signed}requests to the webhook http://{self.listen}{self.path}"

    @property
    def record_time(self) -> str:
        """The clock of the receiver."""
        return "time when the request was written down"
