"""Lines of logfmt, `id=1 amount=2.5`, as values of topics: a text with a blank has quotes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kaflow_engine.api.formats import DecodedRows, EncodedValues

if TYPE_CHECKING:
    import pyarrow as pa

_PAIR = re.compile(r'(\w+)=("[^"]*"|[^\s"]*)(?:\s+|$)')


class Logfmt:
    """The format, as planning and tasks use it; light to load."""

    contract = 1

    def columns(self, sample: Sequence[bytes]) -> Mapping[str, str] | None:
        """Return what the values name; all of it is text."""
        return {name: "VARCHAR" for value in sample for name, _ in pairs(value)}

    def unfit(self, columns: Mapping[str, str]) -> Mapping[str, str]:
        """Return the columns that have parts: a line has none."""
        parts = ("[]", "STRUCT(", "MAP(")
        return {
            name: f"{kind} has parts, and a line of logfmt has none"
            for name, kind in columns.items()
            if kind.startswith(parts[1:]) or kind.endswith(parts[0])
        }

    def decode(self, values: "pa.Array", columns: Mapping[str, str]) -> DecodedRows:
        """Read lines; a column that a line does not name is NULL."""
        import pyarrow as pa

        rows: list[dict[str, str]] = []
        failures: dict[int, str] = {}
        for place, value in enumerate(values.to_pylist()):
            try:
                rows.append(dict(pairs(value)))
            except ValueError as error:
                failures[place] = str(error)
        cells = {name: pa.array([row.get(name) for row in rows], pa.string()) for name in columns}
        return DecodedRows(rows=pa.table(cells), failures=failures)

    def encode(self, rows: "pa.Table", columns: Mapping[str, str]) -> EncodedValues:
        """Write lines; NULL is left out, and a text with a quote is no part of any."""
        import pyarrow as pa

        values: list[bytes | None] = []
        failures: dict[int, str] = {}
        for place, row in enumerate(rows.to_pylist()):
            cells = {name: str(cell) for name, cell in row.items() if cell is not None}
            if any('"' in text for text in cells.values()):
                failures[place] = "a text has a quote"
            values.append(None if place in failures else line(cells).encode())
        return EncodedValues(values=pa.array(values, pa.binary()), failures=failures)


def pairs(value: bytes) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of a line.

    Raises:
        ValueError: It is no line of logfmt.
    """
    text, place = value.decode().strip(), 0
    while place < len(text):
        found = _PAIR.match(text, place)
        if found is None:
            raise ValueError(f"no name=text at character {place + 1}")
        yield found[1], found[2].strip('"')
        place = found.end()


def line(cells: Mapping[str, str]) -> str:
    """Return the line of these texts."""
    quoted = {n: text if re.fullmatch(r"\S+", text) else f'"{text}"' for n, text in cells.items()}
    return " ".join(f"{name}={text}" for name, text in quoted.items())
