"""What sources have in common that are no topics."""

from collections.abc import Iterator
from typing import Any

from kaflow_engine.model.durations import Duration
from kaflow_engine.model.sources.topic_specs import HistorySpec, RecordsSpec, TopicSpec
from kaflow_engine.model.spec import Path


class SourceSpec(RecordsSpec):
    """A source whose kind a file names."""

    type: Any
    history: Duration | None = None
    """How long old versions are kept for `as_of`; None: for ever."""

    @property
    def about(self) -> str:
        """What it reads, in a few words."""
        return self.type

    @property
    def record_time(self) -> str:
        """What the timestamp of a record is."""
        return "timestamp of the record"

    @property
    def pages_by(self) -> str | None:
        """What its pages are cut by, in a few words; None: it has none."""
        return None

    @property
    def guarantee(self) -> str | None:
        """What is promised of its records beside what is said of all."""
        return None

    @property
    def ends(self) -> bool:
        """Whether a run reads all there is of it, and then ends."""
        return False

    @property
    def value_format(self) -> str:
        """The format of its records' values, a name of `model.formats`."""
        return "json"

    @property
    def as_topic(self) -> TopicSpec:
        """How its records are read, in the words of topics."""
        shared = {name: getattr(self, name) for name in RecordsSpec.model_fields}
        own = {"format": self.value_format, "history": HistorySpec(keep=self.history)}
        return TopicSpec.model_validate({**shared, **own, "columns": self.typed})

    @property
    def typed(self) -> dict[str, str] | None:
        """Its columns with their types; None: its records show them."""
        return self.columns

    @property
    def secrets(self) -> Iterator[tuple[Path, str]]:
        """Which secrets of the configuration it names, and where in it."""
        return iter(())
