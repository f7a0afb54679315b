"""Sources that are no topics: their kind is named by `type`, and each has settings of its own."""

from typing import Literal

from pydantic import AwareDatetime, Field

from kaflow_engine.model.durations import Duration
from kaflow_engine.model.names import Filled
from kaflow_engine.model.sources.source_spec import SourceSpec
from kaflow_engine.model.spec import Spec


class FilesSourceSpec(SourceSpec):
    """Files that appear in a folder."""

    type: Literal["files"]
    path: Filled
    """A folder, or a pattern of names with `*`, `?`, `[…]` and `**`."""
    format: Literal["parquet", "json", "csv", "avro"] = "parquet"
    """Of each file: Parquet, one JSON value a line, one line of CSV a record, or Avro."""
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
        """Rows of Parquet and Avro are JSON values."""
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
    """Equal seeds give equal records."""
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
    def ends(self) -> bool:
        """Whether there is a last record."""
        return self.records is not None

    @property
    def record_time(self) -> str:
        """It follows from the rate."""
        return "time when the record appears at its rate"

    @property
    def typed(self) -> dict[str, str]:
        """As declared, else as their values are."""
        own = {name: drawn.column_type for name, drawn in self.values.items()}
        return own if self.columns is None else self.columns
