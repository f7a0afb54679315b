"""The laws of transforms, as tests: who writes one imports them and gives a fixture `subject`.

from kaflow_engine.testing.transform_laws import *

@pytest.fixture
def subject():
    rows = pa.table({"id": [1, 2], "name": ["a", "b"]})
    return TransformSubject(MyKind(), {"name": "a"}, {"id": "BIGINT", "name": "VARCHAR"}, rows)
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import pyarrow as pa

from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.operators.transform.contract import Transformed
from kaflow_engine.plugins.transforms import GivenTransform, TransformPluginKind
from kaflow_engine.transforms.plugin.rows import outcome

__all__ = [
    "TransformSubject",
    "test_it_gives_the_columns_that_it_says",
    "test_rows_become_the_same_again",
    "test_rows_become_the_same_by_themselves",
    "test_rows_become_the_same_however_they_are_cut",
]


@dataclass(frozen=True, kw_only=True)
class TransformSubject:
    """A kind of transform of a plugin under test."""

    kind: TransformPluginKind
    options: Mapping[str, Any]
    """What an author says."""
    columns: Mapping[str, str]
    """The columns of the rows, with their DuckDB types."""
    rows: pa.Table
    """Rows that it is given: some that stay, some that do not."""
    settings: Mapping[str, str] | None = None
    """What a configuration says."""

    @property
    def results(self) -> Mapping[str, str]:
        """The columns that it has to give."""
        options = self.kind.options.model_validate(dict(self.options))
        changed = self.kind.columns(options)
        found = {**self.columns, **changed}
        return {name: type_ for name, type_ in found.items() if type_ is not None}

    def transformed(self, rows: pa.Table) -> Transformed:
        """Open the transform, and let it transform rows."""
        given = GivenTransform(
            name="subject",
            options=self.kind.options.model_validate(dict(self.options)),
            settings=self.settings or {},
            columns=self.columns,
            results=self.results,
        )
        return outcome(self.kind.open(given)(rows), rows.num_rows, [*self.results])


def test_it_gives_the_columns_that_it_says(subject: TransformSubject) -> None:
    """Each result has a value of the type that is said of it."""
    rows = subject.transformed(subject.rows).rows
    assert rows.num_rows, "the subject needs rows of which some stay"
    values = (
        f"CAST({identifier(name)} AS {type_}) AS {identifier(name)}"
        for name, type_ in subject.results.items()
    )
    query(f"SELECT {', '.join(values)} FROM rows", rows)


def test_rows_become_the_same_again(subject: TransformSubject) -> None:
    """A batch that runs again delivers what it has delivered."""
    assert _said(subject, [subject.rows]) == _said(subject, [subject.rows])


def test_rows_become_the_same_by_themselves(subject: TransformSubject) -> None:
    """A row knows nothing of those beside it."""
    alone = [subject.rows.slice(n, 1) for n in range(subject.rows.num_rows)]
    assert _said(subject, alone) == _said(subject, [subject.rows])


def test_rows_become_the_same_however_they_are_cut(subject: TransformSubject) -> None:
    """Which rows come together, an engine decides."""
    half = subject.rows.num_rows // 2
    assert half, "the subject needs two rows or more"
    cut = [subject.rows.slice(0, half), subject.rows.slice(half)]
    assert _said(subject, cut) == _said(subject, [subject.rows])


def _said(subject: TransformSubject, parts: Sequence[pa.Table]) -> list[Any]:
    """Return what becomes of rows, in their order: of each one what it became, or why it failed."""
    return sorted(_all_said(subject, parts), key=itemgetter(0))


def _all_said(subject: TransformSubject, parts: Sequence[pa.Table]) -> Iterator[tuple[int, Any]]:
    start = 0
    for part in parts:
        made = subject.transformed(part)
        for place, row in zip(made.origin.to_pylist(), made.rows.to_pylist(), strict=True):
            yield start + place, row
        for failure in made.failures:
            yield start + failure.row, failure.message
        start += part.num_rows
