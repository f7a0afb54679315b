"""Java's patterns for times, as DuckDB writes them."""

from itertools import groupby

_PARTS = {
    "yyyy": "%Y",
    "yy": "%y",
    "MM": "%m",
    "MMM": "%b",
    "MMMM": "%B",
    "dd": "%d",
    "HH": "%H",
    "hh": "%I",
    "mm": "%M",
    "ss": "%S",
    "SSS": "%g",
    "a": "%p",
    "EEE": "%a",
    "EEEE": "%A",
}


def strftime_pattern(pattern: str) -> str | None:
    """Translate a pattern; None where it holds a letter that has no counterpart.

    >>> strftime_pattern("yyyy-MM-dd'T'HH:mm")
    '%Y-%m-%dT%H:%M'
    """
    found: list[str] = []
    pieces = pattern.split("'")
    for place, piece in enumerate(pieces):
        if place % 2:  # between apostrophes stands what is meant as it is
            found.append((piece or "'").replace("%", "%%"))
            continue
        if not piece and 0 < place < len(pieces) - 1:
            found.append("'")  # two apostrophes inside of what is meant as it is
        for letter, run in groupby(piece):
            part = "".join(run)
            if not letter.isalpha():
                found.append(part.replace("%", "%%"))
            elif part in _PARTS:
                found.append(_PARTS[part])
            else:
                return None
    return "".join(found)
