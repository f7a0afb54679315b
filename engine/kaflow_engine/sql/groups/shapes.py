"""What a group is made of where no GROUP BY makes it: runs of rows, changes of a table, and rows
that are transformed one by one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from kaflow_engine.flow.transforms import IN, PASSED, LookupParams, TransformParams
from kaflow_engine.model.columns import Column

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunShape:
    """Runs of `size` rows, and the SQL over each of them."""

    size: int
    every: int | None
    """Milliseconds of batch time after which a run is made of fewer; None: it waits."""
    per_partition: bool
    """The rows of each source partition make runs of their own."""
    sql: str
    """DuckDB's SQL over `batch`."""
    inputs: tuple[Column, ...]
    """Of `batch`, in the order of the keys of the group."""
    results: tuple[Column, ...]
    """What the SQL selects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendShape:
    """Changes of the table `of` as rows of their own; with `deletes` also rows that go."""

    of: str
    deletes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformShape:
    """Rows that become none, one or several, each alone.

    The keys of the group are the columns that come in, under names with IN, and the record columns
    that go past, under names with PASSED.
    """

    name: str
    """What its author calls it."""
    params: TransformParams
    schema: tuple[tuple[str, str | None], ...]
    """Columns that are added or have another type than those that come in; None: it is taken
    away."""

    @property
    def is_lookup(self) -> bool:
        """Whether rows keep all columns, and get others."""
        return isinstance(self.params, LookupParams)

    @property
    def of_table(self) -> Mapping[str, tuple[str, str]]:
        """By column of its rows, the table that was looked up, and its column; none otherwise."""
        if not isinstance(self.params, LookupParams):
            return {}
        return {called: (self.name, column) for called, column in self.params.columns}

    def is_passed_column(self, key: str) -> bool:
        """Tell whether a key is a column that rows only keep."""
        return key.startswith(IN) and key.removeprefix(IN) not in dict(self.schema)

    def names(self, inputs: Sequence[str]) -> list[str]:
        """Return the names of the columns of its rows, of those that come in."""
        own = dict(self.schema)
        kept = [name for name in inputs if name not in own or own[name] is not None]
        return kept + [name for name, kind in self.schema if kind and name not in inputs]

    def results(self, keys: Sequence[Column]) -> tuple[Column, ...]:
        """Return the columns of its rows, of the keys of the group."""
        inputs = {c.name.removeprefix(IN): c.type for c in keys if c.name.startswith(IN)}
        types = {**inputs, **dict(self.schema)}
        return tuple(Column(name, types[name] or "") for name in self.names(list(inputs)))

    def behind(self, name: str, keys: Sequence[tuple[str, T]]) -> tuple[T, ...]:
        """Return of which keys of the group a column of its rows is made: of the one of its name,
        where the schema does not mention it, else of all that come in; of a look-up, of the values
        by which it looks."""
        known = dict(keys)
        same = name if name in known else f"{IN}{name}"
        if same in known and name not in dict(self.schema):
            return (known[same],)
        read = f"{IN}$on" if self.is_lookup else IN
        return tuple(each for key, each in keys if key.startswith(read))


def is_passed(key: str) -> bool:
    """Tell whether the key of a transform is a record column that goes past it."""
    return key.startswith(PASSED) and not key.startswith(IN)
