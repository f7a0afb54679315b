"""The SQL of a node as words with their places: it is changed where it stands, so that lines stay.

What stands between the words, comments and line ends, is kept.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import TokenError

_ENDS = {
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "ORDER_BY",
    "LIMIT",
    "OFFSET",
    "SEMICOLON",
    "GROUP_BY",
    "HAVING",
    "QUALIFY",
    "WINDOW",
}
"""Words that end a condition, or a FROM."""


@dataclass(frozen=True, slots=True)
class Word:
    """A token."""

    kind: str
    """sqlglot's name of it."""
    text: str
    """Without quotes."""
    start: int
    end: int
    """Behind its last character."""

    @property
    def is_name(self) -> bool:
        """Whether it may be a name, or a part of one."""
        return self.kind in ("VAR", "IDENTIFIER") or self.text.replace("_", "").isalnum()


@dataclass(frozen=True, slots=True)
class Edit:
    """A part of a text, and what takes its place."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A name behind FROM or JOIN."""

    name: str
    start: int
    end: int
    called: str | None
    """Its alias."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Select:
    """A SELECT: ranges are numbers of words, ends not included."""

    role: Literal["top", "cte", "derived", "other"]
    items: range
    """What is selected."""
    sources: tuple[Named, ...]
    where: range | None


@dataclass(frozen=True)
class SqlText:
    """The SQL of a node."""

    text: str

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """Its tokens; none where it has no tokens of SQL."""
        try:
            tokens = DuckDB().tokenize(self.text)
        except TokenError:
            return ()
        return tuple(Word(t.token_type.name, t.text, t.start, t.end + 1) for t in tokens)

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """How many brackets each word stands in; a bracket stands outside of itself."""
        found: list[int] = []
        depth = 0
        for word in self.words:
            depth -= word.kind in ("R_PAREN", "R_BRACKET", "R_BRACE")
            found.append(depth)
            depth += word.kind in ("L_PAREN", "L_BRACKET", "L_BRACE")
        return tuple(found)

    @cached_property
    def selects(self) -> tuple[Select, ...]:
        """All SELECTs, as they stand."""
        return tuple(
            self._select(place) for place, word in enumerate(self.words) if word.kind == "SELECT"
        )

    @cached_property
    def ctes(self) -> frozenset[str]:
        """Names that WITH gives, in lower case."""
        found: set[str] = set()
        for place, word in enumerate(self.words[:-2]):
            behind = [each.kind for each in self.words[place + 1 : place + 3]]
            before = self.words[place - 1].kind if place else ""
            if word.is_name and behind == ["ALIAS", "L_PAREN"] and before in _BEFORE_CTE:
                found.add(word.text.lower())
        return frozenset(found)

    @property
    def sources(self) -> tuple[Named, ...]:
        """Names behind FROM and JOIN that WITH does not give."""
        named = (each for select in self.selects for each in select.sources)
        return tuple(each for each in named if each.name.lower() not in self.ctes)

    def slice(self, words: range) -> str:
        """Return words as they are written."""
        if not words:
            return ""
        return self.text[self.words[words.start].start : self.words[words.stop - 1].end]

    def flat(self, words: range) -> str:
        """Return words on one line, without comments."""
        parts: list[str] = []
        for place in words:
            word = self.words[place]
            apart = place > words.start and self.words[place - 1].end < word.start
            parts.append((" " if apart else "") + self.text[word.start : word.end])
        return "".join(parts)

    def split(self, words: range, kind: str) -> list[range]:
        """Split words where a kind of word stands between them, outside of brackets.

        AND of BETWEEN is no such place.
        """
        found: list[range] = []
        first, between, case = words.start, 0, 0
        for place in words:
            word = self.words[place]
            if self.depths[place] != self.depths[words.start]:
                continue
            case += {"CASE": 1, "END": -1}.get(word.kind, 0)
            between += word.kind == "BETWEEN"
            if word.kind != kind or case:
                continue
            if kind == "AND" and between:
                between -= 1
                continue
            found.append(range(first, place))
            first = place + 1
        return [*found, range(first, words.stop)]

    def _select(self, place: int) -> Select:
        depth = self.depths[place]
        stop = self._until(place + 1, depth, {"UNION", "EXCEPT", "INTERSECT", "SEMICOLON"})
        first = place + 1
        if first < stop and self.words[first].kind in ("DISTINCT", "ALL"):
            first += 1
        of = self._until(first, depth, {"FROM", *_ENDS}, stop)
        where = self._until(of, depth, {"WHERE", *_ENDS}, stop)
        condition = None
        if where < stop and self.words[where].kind == "WHERE":
            condition = range(where + 1, self._until(where + 1, depth, _ENDS, stop))
        return Select(
            role=self._role(place),
            items=range(first, of),
            sources=tuple(self._named(of, where, depth)),
            where=condition,
        )

    def _until(self, place: int, depth: int, kinds: Iterable[str], stop: int | None = None) -> int:
        """Return the next place where one of some words stands, or brackets end."""
        end = len(self.words) if stop is None else stop
        for each in range(place, end):
            if self.depths[each] < depth:
                return each
            if self.depths[each] == depth and self.words[each].kind in kinds:
                return each
        return end

    def _role(self, place: int) -> Literal["top", "cte", "derived", "other"]:
        depth = self.depths[place]
        if depth == 0:
            return "top"
        opened = max(p for p in range(place) if self.depths[p] < depth)
        before = self.words[opened - 1].kind if opened else ""
        if before == "ALIAS":
            return "cte"
        return "derived" if before in ("FROM", "JOIN", "COMMA") else "other"

    def _named(self, first: int, stop: int, depth: int) -> Iterator[Named]:
        """Yield the names behind FROM and JOIN, and behind commas between them."""
        for place in range(first, stop):
            word = self.words[place]
            if self.depths[place] == depth and word.kind in ("FROM", "JOIN", "COMMA"):
                yield from self._name(place + 1, stop)

    def _name(self, place: int, stop: int) -> Iterator[Named]:
        end = place
        parts: list[str] = []
        while end < stop and self.words[end].is_name:
            parts.append(self.words[end].text)
            end += 1
            if end >= stop or self.words[end].kind != "DOT":
                break
            end += 1
        if not parts or (end < len(self.words) and self.words[end].kind == "L_PAREN"):
            return
        after = self.words[end] if end < stop else None
        alias = None
        if after is not None and after.kind == "ALIAS" and end + 1 < stop:
            alias = self.words[end + 1].text
        elif after is not None and after.kind in ("VAR", "IDENTIFIER"):
            alias = after.text
        start, last = self.words[place].start, self.words[end - 1].end
        yield Named(name=".".join(parts), start=start, end=last, called=alias)


_BEFORE_CTE = ("WITH", "RECURSIVE", "COMMA")


def edited(text: str, edits: Sequence[Edit]) -> str:
    """Return a text with its edits, which do not overlap; those of one place stay in order."""
    by_place = sorted(edits, key=lambda edit: (edit.start, edit.end))
    for each in reversed(by_place):
        text = text[: each.start] + each.text + text[each.end :]
    return text
