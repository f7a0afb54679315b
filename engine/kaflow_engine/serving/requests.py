"""A request → what is asked, or why it is refused: pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs

from kaflow_engine.model.durations import format_duration
from kaflow_engine.model.sqlflow.serving.rules import GRAIN
from kaflow_engine.serving.datasets import Dataset, Span, Statement

Value = str | int | datetime | None
Times = tuple[datetime, datetime]

_KINDS = {
    "string": "a text",
    "integer": "a whole number of 64 bits",
    "timestamp": "a time with its offset, such as 2026-09-10T00:00:00Z (write + as %2B)",
}
_MOST_INTEGER = 2**63
_MS = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Refused(Exception):
    """A request that is not answered with rows."""

    def __init__(self, status: int, code: str, message: str, *headers: tuple[str, str]) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.headers = status, code, message, headers


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked."""

    statement: Statement
    values: Mapping[str, Value]
    """Of all parameters."""
    times: Times | None
    """From when until when, in a data set with a range."""


def read_request(dataset: Dataset, query: str, now: datetime) -> Asked:
    """Return what is asked of a data set.

    Args:
        dataset: Of which one.
        query: The part of a URL behind its question mark.
        now: With its offset.

    Raises:
        Refused: It does not fit.
    """
    try:
        given = parse_qs(query, keep_blank_values=True, strict_parsing=bool(query), errors="strict")
    except ValueError:
        raise Refused(400, "invalid_param", "the query of the URL cannot be read") from None
    values = _values(dataset, given)
    grain = _one(GRAIN, given[GRAIN]) if GRAIN in given else None
    if grain is not None and grain not in dataset.grains:
        there = f"grains: {', '.join(dataset.grains)}" if dataset.grains else "it has no grains"
        raise Refused(
            400, "unknown_grain", f"data set {dataset.name} has no grain {grain}; {there}"
        )
    if dataset.span is None:
        return Asked(statement=_named(dataset, grain), values=values, times=None)
    times = _times(dataset.span, values, now)
    statement = _fitting(dataset, grain, times[1] - times[0])
    if dataset.ttl_s is not None and statement.bucket is not None:
        times = _up(times[0], statement.bucket), _up(times[1], statement.bucket)
    span = {dataset.span.since: times[0], dataset.span.until: times[1]}
    return Asked(statement=statement, values={**values, **span}, times=times)


def _values(dataset: Dataset, given: Mapping[str, Sequence[str]]) -> dict[str, Value]:
    for name in sorted(given):
        if name not in dataset.params and name != GRAIN:
            known = f"; parameters: {', '.join(dataset.params)}" if dataset.params else ""
            raise Refused(400, "unknown_param", f"there is no parameter {name}{known}")
    return {
        name: _value(name, kind, _one(name, given[name])) if name in given else None
        for name, kind in dataset.params.items()
    }


def _one(name: str, texts: Sequence[str]) -> str:
    if len(texts) > 1:
        raise Refused(400, "invalid_param", f"{name} is given {len(texts)} times")
    return texts[0]


def _value(name: str, kind: str, text: str) -> Value:
    found = _parsed(kind, text)
    if found is None:
        message = f"the parameter {name} is {_KINDS[kind]}; got '{text[:100]}'"
        raise Refused(400, "invalid_param", message)
    return found


def _parsed(kind: str, text: str) -> Value:
    """Return the value of a text; None: it has none."""
    if kind == "string":
        return None if "\0" in text else text
    try:
        if kind == "integer":
            plain = text.isascii() and text.removeprefix("-").removeprefix("+").isdigit()
            found = int(text) if plain and len(text) <= 20 else _MOST_INTEGER
            return found if -_MOST_INTEGER <= found < _MOST_INTEGER else None
        time = datetime.fromisoformat(text)
        return time.astimezone(UTC) if time.tzinfo and len(text) > 10 else None
    except (ValueError, OverflowError):
        return None


def _named(dataset: Dataset, grain: str | None) -> Statement:
    if dataset.grains and grain is None:
        known = ", ".join(dataset.grains)
        raise Refused(
            400, "missing_grain", f"data set {dataset.name} needs a grain; grains: {known}"
        )
    return dataset.statements[grain or ""]


def _times(span: Span, values: Mapping[str, Value], now: datetime) -> Times:
    since, until = values[span.since], values[span.until]
    assert not isinstance(since, str | int)
    assert not isinstance(until, str | int)
    end = until or now.astimezone(UTC)
    try:
        start = since or end - span.default * _MS
    except OverflowError:
        start = end
    if start >= end:
        message = f"{span.since} must lie before {span.until}"
        raise Refused(400, "invalid_param", message)
    return start, end


def _fitting(dataset: Dataset, grain: str | None, width: timedelta) -> Statement:
    """Return the statement of a grain that is asked for, else of the finest that is allowed."""
    fitting = [s for s in dataset.statements.values() if width <= (s.max_range or 0) * _MS]
    if grain is None and fitting:
        return fitting[0]
    if grain is not None and dataset.statements[grain] in fitting:
        return dataset.statements[grain]
    if not fitting:
        last = [*dataset.statements.values()][-1]
        hint = f"the widest grain, {last.grain}, takes {format_duration(last.max_range or 0)}"
    else:
        hint = f"grains that take it: {', '.join(each.grain for each in fitting)}"
    raise Refused(400, "range_too_wide", f"the range is too wide; {hint}")


def _up(time: datetime, bucket: int) -> datetime:
    """Round a time up: what begins with a bucket is the same behind both."""
    rest = (time - _EPOCH) % (bucket * _MS)
    try:
        return time + (bucket * _MS - rest) if rest else time
    except OverflowError:
        return time


def key_of(asked: Asked) -> tuple[object, ...]:
    """Return what two requests have in common whose answers are the same."""
    return (asked.statement.dataset, asked.statement.grain, *asked.values.values())
