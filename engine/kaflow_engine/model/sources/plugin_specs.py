"""Sources of packages: kinds that plugins offer, and data sources written for PySpark."""

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from kaflow_engine.model.durations import format_duration
from kaflow_engine.model.names import refuse
from kaflow_engine.model.plugin_options import Option, PluginName
from kaflow_engine.model.sources.live_specs import LiveSourceSpec, Wait

PYSPARK = "pyspark:"
"""Stands before the format of a data source of PySpark."""


def format_name(text: str) -> str:
    """Return the type of a data source of PySpark.

    Raises:
        ValueError: It is none.
    """
    if not re.fullmatch(rf"{PYSPARK}[A-Za-z_][A-Za-z0-9_.-]*", text):
        raise refuse(
            "{value} is not a data source of PySpark",
            "write pyspark:<format>, such as pyspark:rest_api",
        )
    return text


class PluginSourceSpec(LiveSourceSpec):
    """A kind of source that an installed package offers."""

    unit: ClassVar[str] = "row"
    mark: ClassVar[str] = "."
    type: PluginName
    """`<namespace>.<name>`: an entry point of the group `kaflow.sources`."""
    options: dict[str, Option] = Field(default={})
    """What the plugin takes; it says itself what is right."""

    @property
    def about(self) -> str:
        """Who gives the rows."""
        return f"rows of the plugin {self.type}"

    @property
    def record_time(self) -> str:
        """What the plugin says, or when it was written down."""
        return f"time that the plugin gives, or when the {self.unit} was written down"

    @property
    def guarantee(self) -> str:
        """That of the journal, where there is one."""
        return "exactly once what is written down, with the position that the plugin goes on from"


class PySparkSourceSpec(LiveSourceSpec):
    """A data source that is written for PySpark: a class of a package."""

    unit: ClassVar[str] = "row"
    mark: ClassVar[str] = PYSPARK
    type: Annotated[str, AfterValidator(format_name)]
    """`pyspark:<format>`; an entry point or the configuration says which class that is."""
    options: dict[str, Option] = Field(default={})
    """What the data source takes; texts for it, as Spark's options are."""
    read: Literal["stream", "batch"] = "stream"
    """As Spark's `readStream`, or once as its `read`."""
    interval: Wait = 1_000
    """How long to wait, in ms, before it is asked again where nothing new was there."""

    @property
    def about(self) -> str:
        """Which data source."""
        how = (
            "read once" if self.read == "batch" else f"asked every {format_duration(self.interval)}"
        )
        return f"rows of {self.type}, {how}"

    @property
    def guarantee(self) -> str:
        """Its offset is written with its rows."""
        return "exactly once by its offset, which is written down with the rows before it"

    @property
    def ends(self) -> bool:
        """Whether it is read once."""
        return self.read == "batch"

    @property
    def format(self) -> str:
        """What Spark calls it."""
        return self.type.removeprefix(PYSPARK)

    @property
    def texts(self) -> Mapping[str, str]:
        """Its options as Spark hands them on."""
        return {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in self.options.items()
            if value is not None
        }
