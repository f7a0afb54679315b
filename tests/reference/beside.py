"""What records have beside their values: headers that a query sets, in the oracle's terms."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from tests.reference.conditions import Column, Values

HEADERS = "_headers"
OF_THE_ENGINE = "kaflow."
"""How the names of headers begin that no query sets."""


@dataclass(frozen=True, slots=True)
class Made:
    """`map {'a': CAST(c AS VARCHAR), 'b': 'x'}`."""

    pairs: tuple[tuple[str, Column | str | None], ...]

    def of(self, values: Values) -> Mapping[str, str | None]:
        """Compute the headers."""
        return {name: _text(part, values) for name, part in self.pairs}


@dataclass(frozen=True, slots=True)
class Traced:
    """Those of a driving record that name its trace."""

    record: Column

    def of(self, values: Values) -> Mapping[str, str | None]:
        """Compute the headers."""
        found = cast(Mapping[str, str | None] | None, self.record.of(values))
        return {name: value for name, value in (found or {}).items() if name in OF_TRACES}


OF_TRACES = ("traceparent", "tracestate")
NONE = Made(())
"""Those of a branch that has none, beside others that have some."""
Headers = Column | Made | Traced
"""The headers of a source's record, or those that a query makes."""


def _text(part: Column | str | None, values: Values) -> str | None:
    value = part.of(values) if isinstance(part, Column) else part
    return None if value is None else str(value)


def headers_of(headers: Headers | None, values: Values) -> tuple[tuple[str, str | None], ...]:
    """Return the headers of the record of a row, in their order."""
    found = cast(Mapping[str, str | None] | None, headers and headers.of(values))
    shown = found.items() if found else ()
    return tuple((name, value) for name, value in shown if not name.startswith(OF_THE_ENGINE))


def columns_in(headers: Headers | None) -> Iterator[Column]:
    """Yield the columns that headers are made of, without `_headers` itself."""
    for _, part in headers.pairs if isinstance(headers, Made) else ():
        if isinstance(part, Column):
            yield part
