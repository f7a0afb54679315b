"""The laws of transforms, as tests: who writes one imports them and gives a fixture `subject`.

from kaflow_engine.testing.transform_laws import *

@pytest.fixture
def subject():
    rows = pa.table({"id": [1, 2], "name": ["a", "b"]})
    return TransformSubject(MyKind(), {"name": "a"}, {"id": "BIGINT", "name": "VARCHAR"}, rows)
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import pyarrow as pa

from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.operators.transform.contract import Transformed
from kaflow_engine.plugins.transforms import GivenTransform, NewRows, TransformPluginKind
from kaflow_engine.transforms.plugin.rows import outcome

__all__ = [
    "TransformSubject",
    "test_a_state_is_the_same_in_whatever_order_it_is_merged",
    "test_it_gives_the_columns_that_it_says",
    "test_rows_become_the_same_again",
    "test_rows_become_the_same_by_themselves",
    "test_rows_become_the_same_however_they_are_cut",
    "test_rows_teach_the_same_however_they_are_cut",
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
    state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What was learned before."""

    @property
    def results(self) -> Mapping[str, str]:
        """The columns that it has to give."""
        options = self.kind.options.model_validate(dict(self.options))
        changed = self.kind.columns(options)
        found = {**self.columns, **changed}
        return {name: type_ for name, type_ in found.items() if type_ is not None}

    def transformed(self, rows: pa.Table) -> Transformed:
        """Open the transform, and let it transform rows."""
        return outcome(self._made(rows), rows.num_rows, [*self.results])

    def learned(self, rows: pa.Table) -> list[tuple[int, str, Any]]:
        """Return what rows add to the state, in the order of the rows."""
        return sorted(self._made(rows).learned, key=itemgetter(0, 1))

    def state_after(self, *parts: pa.Table) -> Mapping[str, Any]:
        """Return the state after a batch of rows, each part of which a task has had."""
        notes: list[Mapping[str, Any]] = []
        for part in parts:
            notes.append(self._merged({}, [(key, each) for _, key, each in self.learned(part)]))
        added = [(key, each) for note in notes for key, each in note.items()]
        return {**self.state, **self._merged(self.state, added)}

    def _merged(
        self, before: Mapping[str, Any], added: Sequence[tuple[str, Any]]
    ) -> Mapping[str, Any]:
        kind: Any = self.kind
        by_key: dict[str, list[Any]] = {}
        for key, value in added:
            by_key.setdefault(key, []).append(value)
        found = {key: kind.merge(key, before.get(key), some) for key, some in by_key.items()}
        return json.loads(json.dumps(found))

    def _made(self, rows: pa.Table) -> NewRows:
        given = GivenTransform(
            name="subject",
            options=self.kind.options.model_validate(dict(self.options)),
            settings=self.settings or {},
            columns=self.columns,
            results=self.results,
            state=self.state,
        )
        return self.kind.open(given)(rows)


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


def test_rows_teach_the_same_however_they_are_cut(subject: TransformSubject) -> None:
    """What is learned follows from rows, as all else does."""
    rows, half = subject.rows, subject.rows.num_rows // 2
    cut = subject.learned(rows.slice(0, half))
    cut += [(half + row, key, value) for row, key, value in subject.learned(rows.slice(half))]
    assert cut == subject.learned(rows) == subject.learned(rows)


def test_a_state_is_the_same_in_whatever_order_it_is_merged(subject: TransformSubject) -> None:
    """Tasks end in any order, and what each has learned is merged first."""
    rows, half = subject.rows, subject.rows.num_rows // 2
    first, second = rows.slice(0, half), rows.slice(half)
    at_once = subject.state_after(rows)
    assert subject.state_after(first, second) == subject.state_after(second, first) == at_once


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
