"""What the names in a SELECT mean: facets, sources, elements of lists, fields."""

from collections.abc import Mapping
from dataclasses import dataclass

from kaflow_engine.errors import SqlError
from kaflow_engine.model.key_formats import KeyFormat, window_of
from kaflow_engine.model.lenses.grammar.source_text import SourceText
from kaflow_engine.model.lenses.grammar.syntax import Field, Kind, Name
from kaflow_engine.model.lenses.lowering.writer import literal, quoted
from kaflow_engine.model.pipelines.contract import FunctionKindOf

FACETS = ("_key", "_value", "_meta")

_META = {
    "timestamp": "epoch_ms({}_timestamp)",
    "offset": "{}_offset",
    "partition": "{}_partition",
    "topic": "{}_topic",
}

IN_WINDOWED = {"value": "key", "window.start": "start", "window.end": "end"}
"""What Lenses calls the parts of a key with a window, and what they are here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What is known of the rows of a topic or of a WITH."""

    kind: Kind
    key: Mapping[str, str] | None = None
    """Fields of its key, `a.b` of one inside of another, with their DuckDB types; None: the key is
    one text."""
    key_form: KeyFormat | None = None
    """The format of a key that is a structure, JSON, Avro or one with a window; None: of what has
    fields, JSON as text."""
    whole: str | None = None
    """The column that is the whole value, where it is a text or bytes."""
    grouped: bool = False
    several_keys: bool = False
    """The key of a group is several values: it was grouped by them, or by a window."""

    @property
    def is_json_text(self) -> bool:
        """Whether the key is a text that has fields."""
        return self.key is not None and self.key_form is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A source of a SELECT."""

    called: str
    """As the SELECT calls it."""
    name: Name
    relation: str
    """What stands for it in DuckDB's SQL: its name, or that of a reading of it."""
    shape: Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The sources of a SELECT, the one first whose rows drive it."""

    source: SourceText
    function_kind: FunctionKindOf
    inputs: tuple[Input, ...]
    driving: Input
    elements: tuple[str, ...] = ()
    """Names behind LATERAL."""
    outer: bool = False
    """Whether rows of any source may stand alone."""

    def prefix(self, of: Input) -> str:
        """Return what stands before columns of a source."""
        return f"{quoted(of.called)}." if len(self.inputs) > 1 else ""

    def key_of(self, of: Input) -> str:
        """Return the SQL of a whole key."""
        return f"{self.prefix(of)}_key"

    def own_key(self) -> str:
        """Return the SQL of the key that a row has where its SELECT says no other."""
        if not self.outer:
            return self.key_of(self.driving)
        return f"coalesce({', '.join(map(self.key_of, self.inputs))})"

    def headers(self) -> str:
        """Return the SQL of the headers of the record."""
        return f"{self.prefix(self.driving)}_headers"

    def input(self, called: str) -> Input | None:
        """Return the source that is called so."""
        return next((each for each in self.inputs if each.called == called), None)

    def sql(self, field: Field) -> str:
        """Return the SQL of a field.

        Raises:
            SqlError: There is no such facet, or it has no such field.
        """
        first, *others = field.parts
        of = self.input(first.text)
        if first.text in FACETS:
            return self._facet(first, others, self.driving)
        if first.text in self.elements or of is None:
            return ".".join(quoted(part.text) for part in field.parts)
        if not others:
            raise self._wrong(first, f"'{first.text}' is a source", f"write {first.text}.<field>")
        if others[0].text in FACETS:
            return self._facet(others[0], others[1:], of)
        return ".".join(quoted(part.text) for part in field.parts)

    def _facet(self, facet: Name, path: list[Name], of: Input) -> str:
        prefix = self.prefix(of)
        if facet.text == "_key":
            return self._in_key(path, of) if path else self.key_of(of)
        if facet.text == "_value":
            return self._in_value(facet, path, of)
        known = "_meta.timestamp, _meta.offset, _meta.partition and _meta.topic are known"
        if len(path) != 1 or path[0].text not in _META:
            text = ".".join(["_meta", *(part.text for part in path)])
            raise self._wrong(facet, f"there is no '{text}'", known)
        return _META[path[0].text].format(prefix)

    def _in_key(self, path: list[Name], of: Input) -> str:
        name = ".".join(part.text for part in path)
        if of.shape.key is None:
            raise self._wrong(
                path[0],
                f"the key of '{of.name.text}' is one text, and has no field '{name}'",
                f"declare topics: {of.name.text}: key_columns: {{{name}: <type>}} in the "
                "processor's YAML, if the key is JSON",
            )
        if name not in of.shape.key:
            known = ", ".join(of.shape.key)
            raise self._wrong(
                path[0], f"the key of '{of.name.text}' has no field '{name}'", f"it has: {known}"
            )
        if window_of(of.shape.key_form) is not None:
            return f"struct_extract({self.key_of(of)}, {literal(IN_WINDOWED[name])})"
        if of.shape.key_form is not None:
            names = (f", {literal(part.text)})" for part in path)
            return "struct_extract(" * len(path) + self.key_of(of) + "".join(names)
        inside = literal("$" + "".join(f'."{part.text}"' for part in path))
        text = f"json_extract_string({self.key_of(of)}, {inside})"
        kind = of.shape.key[name]
        return text if kind.upper() == "VARCHAR" else f"CAST({text} AS {kind})"

    def _in_value(self, facet: Name, path: list[Name], of: Input) -> str:
        if path:
            return self.prefix(of) + ".".join(quoted(part.text) for part in path)
        if of.shape.whole is None:
            raise self._wrong(
                facet,
                f"the value of '{of.name.text}' has fields, and cannot stand as a whole",
                "name the fields, or declare the topic with format: raw",
            )
        return self.prefix(of) + quoted(of.shape.whole)

    def _wrong(self, name: Name, message: str, hint: str) -> SqlError:
        return SqlError(message, self.source.place(name.offset), hint)
