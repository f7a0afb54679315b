"""Compares what a case expects with what happened."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import zip_longest

from kaflow_engine.flow.flow import instant
from kaflow_engine.testing.cases.specs import Case, Letter, Row
from kaflow_engine.testing.cases.values import Json, comparable, json_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """All that came out of a case."""

    outputs: tuple[str, ...]
    """Topics and tables, in the order of the pipeline file."""
    rows: tuple[Row, ...]
    """In order."""
    raw: tuple[bytes | None, ...]
    """The value of each row as it was written; None: a delete."""
    letters: tuple[Letter, ...]
    counters: Mapping[str, int]
    """Totals at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A line of two columns: what was expected and what came, one of which may be missing."""

    expected: str | None
    actual: str | None
    equal: bool

    @property
    def mark(self) -> str:
        """How the line is marked."""
        if self.equal:
            return "="
        return "-" if self.actual is None else "+" if self.expected is None else "≠"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One part of the outcome that is not as expected."""

    part: str
    """`rows`, `values`, `tables`, `dead letters` or `counters`."""
    pairs: tuple[Pair, ...]


def compare(case: Case, outcome: Outcome, *, as_given: bool, keeps_order: bool) -> list[Difference]:
    """Return what differs, nothing if the case holds.

    Args:
        case: What is expected; what it does not mention is not compared.
        outcome: What happened.
        as_given: The batches are those of the case, so `in_batch` counts.
        keeps_order: Rows of different keys have an order too.
    """
    found = [
        _rows(case, outcome, as_given),
        _raw(case, outcome, keeps_order),
        _tables(case, outcome),
        _letters(case, outcome),
        _counters(case, outcome),
    ]
    return [part for part in found if part and not all(pair.equal for pair in part.pairs)]


def _rows(case: Case, outcome: Outcome, as_given: bool) -> Difference | None:
    if case.expect is None:
        return None
    numbered = as_given and any(spec.in_batch is not None for spec in case.expect)
    expected = [
        Row(
            topic=spec.topic or outcome.outputs[0],
            key=spec.key,
            value=value,
            batch=spec.in_batch if numbered else None,
            at=spec.at,
            headers=None if spec.headers is None else tuple(spec.headers.items()),
        )
        for spec, value in zip(case.expect, case.values, strict=True)
    ]
    return Difference(
        part="rows",
        pairs=tuple(
            pair
            for key, wanted, came in _by_key(expected, _chosen(case, outcome.rows))
            for pair in _aligned(wanted, came, numbered, ordered=key[1] is not None)
        ),
    )


def _chosen(case: Case, rows: Sequence[Row]) -> Sequence[Row]:
    """Return rows with what the case compares of them."""
    columns = case.spec.columns
    if columns is None:
        return rows
    return [replace(row, key=None, value=_only(row.value, columns)) for row in rows]


def _only(value: Json, columns: Sequence[str]) -> Json:
    if not isinstance(value, dict):
        return value
    return {name: value[name] for name in columns if name in value}


Place = tuple[str, str | None]
"""A topic and a key."""


def _by_key(
    expected: Iterable[Row], actual: Iterable[Row]
) -> list[tuple[Place, list[Row], list[Row]]]:
    """Rows of one key are in order; between keys there is none."""
    found: dict[Place, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    for side, rows in enumerate((expected, actual)):
        for row in rows:
            found[(row.topic, row.key)][side].append(row)
    return [(place, wanted, came) for place, (wanted, came) in found.items()]


def _aligned(
    expected: Sequence[Row], actual: Sequence[Row], numbered: bool, ordered: bool
) -> list[Pair]:
    wanted = [comparable(row.value) for row in expected]
    came = [comparable(row.value) for row in actual]
    if not ordered:  # records without a key may go to any partition
        expected, wanted = _sorted(expected, wanted)
        actual, came = _sorted(actual, came)
    pairs: list[Pair] = []
    matcher = SequenceMatcher(None, wanted, came, autojunk=False)
    for tag, start, stop, first, last in matcher.get_opcodes():
        for row, other in zip_longest(expected[start:stop], actual[first:last]):
            pairs.append(
                Pair(
                    expected=row and _shown(row, numbered, row),
                    actual=other and _shown(other, numbered, row),
                    equal=tag == "equal" and _in_place(row, other),
                )
            )
    return pairs


def _sorted(rows: Sequence[Row], values: Sequence[Hashable]) -> tuple[list[Row], list[Hashable]]:
    order = sorted(range(len(rows)), key=lambda n: json_text(rows[n].value))
    return [rows[n] for n in order], [values[n] for n in order]


def _in_place(expected: Row | None, actual: Row | None) -> bool:
    """Tell whether a row came in the batch, and has the time and headers, that are asked for."""
    if expected is None or actual is None:
        return True
    return (
        expected.batch in (None, actual.batch)
        and expected.at in (None, actual.at)
        and expected.headers in (None, actual.headers)
    )


def _shown(row: Row, numbered: bool, asked: Row | None) -> str:
    """Show a row, with the time and the headers where one asks for them."""
    place = f" (batch {row.batch})" if numbered and row.batch is not None else ""
    timed = asked is not None and asked.at is not None and row.at is not None
    time = f" at {instant(row.at)}" if timed and row.at is not None else ""
    key = "no key" if row.key is None else row.key
    headers = asked is not None and asked.headers is not None and row.headers is not None
    beside = f" {json_text(dict(row.headers or ()))}" if headers else ""
    return f"{row.topic} {key}{place}{time}{beside} {json_text(row.value)}"


def _raw(case: Case, outcome: Outcome, keeps_order: bool) -> Difference | None:
    if case.spec.expect_raw is None:
        return None
    expected = list(case.spec.expect_raw)
    actual = [
        "null" if value is None else value.decode(errors="backslashreplace")
        for value in outcome.raw
    ]
    if not keeps_order:
        expected, actual = sorted(expected), sorted(actual)
    matcher = SequenceMatcher(None, expected, actual, autojunk=False)
    pairs = [
        Pair(expected=wanted, actual=came, equal=tag == "equal")
        for tag, start, stop, first, last in matcher.get_opcodes()
        for wanted, came in zip_longest(expected[start:stop], actual[first:last])
    ]
    return Difference(part="values", pairs=tuple(pairs))


def _tables(case: Case, outcome: Outcome) -> Difference | None:
    """Compare the last record of each key; one that deletes it leaves nothing."""
    if case.table is None:
        return None
    wanted = {(spec.topic or outcome.outputs[0], spec.key): value for spec, value in case.table}
    last = {(row.topic, row.key): row.value for row in outcome.rows if row.key is not None}
    came = {place: value for place, value in last.items() if value is not None}
    return Difference(
        part="tables",
        pairs=tuple(
            Pair(
                expected=_last(place, wanted),
                actual=_last(place, came),
                equal=comparable(wanted.get(place)) == comparable(came.get(place)),
            )
            for place in sorted({*wanted, *came})
        ),
    )


def _last(place: tuple[str, str], table: Mapping[tuple[str, str], Json]) -> str | None:
    topic, key = place
    return f"{topic} {key} {json_text(table[place])}" if place in table else None


def _letters(case: Case, outcome: Outcome) -> Difference | None:
    if case.letters is None:
        return None
    rest = sorted(outcome.letters, key=str)
    pairs: list[Pair] = []
    # Those that name a partition first: they have no choice.
    for letter in sorted(case.letters, key=lambda each: each.partition is None):
        found = next((other for other in rest if _fits(letter, other)), None)
        if found is not None:
            rest.remove(found)
        pairs.append(Pair(expected=str(letter), actual=found and str(found), equal=bool(found)))
    pairs += [Pair(expected=None, actual=str(other), equal=False) for other in rest]
    return Difference(part="dead letters", pairs=tuple(pairs))


def _fits(expected: Letter, actual: Letter) -> bool:
    return (
        (expected.topic, expected.offset, expected.phase)
        == (actual.topic, actual.offset, actual.phase)
    ) and expected.partition in (None, actual.partition)


def _counters(case: Case, outcome: Outcome) -> Difference | None:
    pairs = [
        Pair(
            expected=f"{name}: {count}",
            actual=f"{name}: {outcome.counters.get(name, 0)}",
            equal=outcome.counters.get(name, 0) == count,
        )
        for name, count in case.spec.expect_counters.items()
    ]
    return Difference(part="counters", pairs=tuple(pairs))
