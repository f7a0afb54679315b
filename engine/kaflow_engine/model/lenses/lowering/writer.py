"""Writes DuckDB's SQL, each part on the line on which its author wrote it."""

from kaflow_engine.model.lenses.grammar.source_text import SourceText
from kaflow_engine.model.lenses.grammar.syntax import Node


class Writer:
    """SQL that grows; its first line is that of the first node."""

    def __init__(self, source: SourceText, first: Node) -> None:
        self.source = source
        self.first = first.offset
        """Of the first node in its text."""
        self._line = source.line(first.offset)
        self._parts: list[str] = []

    def at(self, node: Node) -> None:
        """Go down to the line of a node, if it is further down."""
        line = self.source.line(node.offset)
        if line > self._line:
            self._parts.append("\n" * (line - self._line))
            self._line = line

    def put(self, *texts: str) -> None:
        """Write texts that hold no end of line."""
        self._parts += texts

    @property
    def sql(self) -> str:
        """What was written."""
        lines = "".join(self._parts).split("\n")
        return "\n".join(line.rstrip() for line in lines)


def quoted(name: str) -> str:
    """Return a name in DuckDB's quotes."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text in DuckDB's quotes, on one line."""
    lines = text.split("\n")
    if len(lines) == 1:
        return "'" + text.replace("'", "''") + "'"
    return "concat_ws(chr(10), " + ", ".join(literal(line) for line in lines) + ")"
