"""DuckDB as a parser: statements of a text, which are neither bound nor run."""

import os
import re
from dataclasses import dataclass
from functools import lru_cache

import duckdb

_LINE = re.compile(r"\n+LINE (\d+):.*", re.DOTALL)
_KNOWN = re.compile(r"\s*Candidate bindings: ?:? ?")
_KIND = re.compile(r"^[A-Za-z ]+ Error: ")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A statement."""

    kind: str
    """Such as `SELECT`."""
    parameters: frozenset[str]
    """Names behind `$`; numbers of those without a name."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """What DuckDB says is wrong."""

    text: str
    line: int | None
    """Of the text, counted from 1."""


def parse(sql: str) -> tuple[Parsed, ...] | Complaint:
    """Return the statements of a text, or why it cannot be read."""
    try:
        found = _parser(os.getpid()).extract_statements(sql)
    except duckdb.Error as error:
        return complaint(error)
    return tuple(Parsed(each.type.name, frozenset(each.named_parameters)) for each in found)


def complaint(error: duckdb.Error) -> Complaint:
    """Return what an error says, on one line and without a drawing of its place.

    >>> complaint(duckdb.Error('Binder Error: no "a"\\n\\nLINE 2: SELECT a\\n  ^'))
    Complaint(text='no "a"', line=2)
    """
    said = str(error)
    place = _LINE.search(said)
    text = _KNOWN.sub("; there are ", _KIND.sub("", _LINE.sub("", said)))
    return Complaint(" ".join(text.split()), int(place[1]) if place else None)


@lru_cache(maxsize=1)
def _parser(process: int) -> duckdb.DuckDBPyConnection:
    return duckdb.connect()  # of each process: a forked one must not use that of its parent
