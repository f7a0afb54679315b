"""Dynamic tables as their authors name them: sets of values that queries ask for a value."""

from dataclasses import dataclass

from kaflow_engine.errors import Location
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.sql.named.attached import attached_text


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicTable:
    """A set of values."""

    name: str
    of: str
    """The topic, source or relation that has them."""
    key: str
    """The column of it."""
    attached: bool
    """They stay in a table of a database, which is asked; else the engine keeps them."""
    at: Location
    """Where its name stands."""


def dynamic_tables(spec: PipelineSpec) -> tuple[DynamicTable, ...]:
    """Return the dynamic tables of a pipeline."""
    return tuple(
        DynamicTable(
            name=name,
            of=said.from_,
            key=said.key,
            attached=attached_text(spec, said.from_) is not None,
            at=spec.place("relations", name),
        )
        for name, said in spec.dynamic_tables.items()
    )
