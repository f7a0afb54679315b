"""The laws of formats, as tests: who writes one imports them and gives a fixture `subject`.

from kaflow_engine.testing.format_laws import *

@pytest.fixture
def subject():
    rows = pa.table({"id": [1, 2], "name": ["a", None]})
    return FormatSubject(
        plugin=MyFormat(), columns={"id": "BIGINT", "name": "VARCHAR"}, rows=rows, bad=b"\\xff"
    )
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from kaflow_engine.formats.decoded import Decoded
from kaflow_engine.formats.plugin.values import decode_values, encode_rows
from kaflow_engine.model.columns import Column
from kaflow_engine.plugins.formats import FormatPlugin

__all__ = [
    "FormatSubject",
    "test_a_bad_value_harms_no_other",
    "test_it_takes_the_columns_of_the_subject",
    "test_only_columns_that_are_asked_for_are_needed",
    "test_rows_become_the_same_however_they_are_cut",
    "test_values_become_the_same_however_they_are_cut",
    "test_what_was_encoded_is_decoded",
]


@dataclass(frozen=True, kw_only=True)
class FormatSubject:
    """The format of a plugin under test."""

    plugin: FormatPlugin
    columns: Mapping[str, str]
    """The columns of the rows, with their DuckDB types."""
    rows: pa.Table
    """Two rows or more, all of which the format can hold."""
    bad: bytes
    """A value that it cannot read."""

    def decoded(self, values: pa.Array, columns: Mapping[str, str] | None = None) -> Decoded:
        """Decode values as a task does."""
        asked = self.columns if columns is None else columns
        return decode_values("subject", self.plugin, values, _columns(asked))

    def encoded(self, rows: pa.Table) -> pa.Array:
        """Encode rows as a task does; none is bad."""
        found = encode_rows("subject", self.plugin, rows, _columns(self.columns))
        assert found.bad == ()
        return found.array


def test_it_takes_the_columns_of_the_subject(subject: FormatSubject) -> None:
    """Planning asks for what a format has no type or name."""
    assert subject.plugin.unfit(subject.columns) == {}


def test_what_was_encoded_is_decoded(subject: FormatSubject) -> None:
    """One pipeline reads what another one writes."""
    decoded = subject.decoded(subject.encoded(subject.rows))
    assert decoded.bad == ()
    assert decoded.table.to_pylist() == subject.rows.to_pylist()


def test_a_bad_value_harms_no_other(subject: FormatSubject) -> None:
    """It is a dead letter, and the others are rows."""
    first, *others = subject.encoded(subject.rows).to_pylist()
    decoded = subject.decoded(pa.array([first, subject.bad, *others], pa.binary()))
    assert [(one.row, bool(one.message)) for one in decoded.bad] == [(1, True)]
    assert decoded.table.to_pylist() == subject.rows.to_pylist()


def test_only_columns_that_are_asked_for_are_needed(subject: FormatSubject) -> None:
    """A query reads some columns, or none, of values whose cells have names."""
    if getattr(subject.plugin, "positional", False):
        return
    values, names = subject.encoded(subject.rows), [*subject.columns][1:]
    asked = {name: subject.columns[name] for name in names}
    decoded = subject.decoded(values, asked)
    assert decoded.table.to_pylist() == subject.rows.select(names).to_pylist()
    assert len(subject.decoded(values, {}).good) == subject.rows.num_rows


def test_values_become_the_same_however_they_are_cut(subject: FormatSubject) -> None:
    """Which values come together, an engine decides."""
    whole = subject.encoded(subject.rows)
    alone = (subject.decoded(whole.slice(n, 1)).table for n in range(len(whole)))
    assert _rows(alone) == _rows([subject.decoded(whole).table])


def test_rows_become_the_same_however_they_are_cut(subject: FormatSubject) -> None:
    """A batch that runs again delivers what it has delivered."""
    assert subject.rows.num_rows > 1, "the subject needs two rows or more"
    alone = (subject.encoded(subject.rows.slice(n, 1)) for n in range(subject.rows.num_rows))
    whole = subject.encoded(subject.rows)
    assert [value for each in alone for value in each.to_pylist()] == whole.to_pylist()
    assert subject.encoded(subject.rows).to_pylist() == whole.to_pylist()


def _columns(named: Mapping[str, str]) -> tuple[Column, ...]:
    return tuple(Column(name, kind) for name, kind in named.items())


def _rows(parts: Iterable[pa.Table]) -> list[dict[str, object]]:
    return [row for part in parts for row in part.to_pylist()]
