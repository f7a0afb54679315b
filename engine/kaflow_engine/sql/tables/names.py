"""What names after FROM and JOIN mean: queries of a WITH, relations, or topics and readings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from kaflow_engine.errors import Location, SqlError
from kaflow_engine.model.key_formats import TEXT
from kaflow_engine.sql.groups.changes import changes_of
from kaflow_engine.sql.groups.grouping import is_grouped
from kaflow_engine.sql.groups.windows import leaves_once
from kaflow_engine.sql.streamable import is_unnest, line_of, row_number_of
from kaflow_engine.sql.syntax import at_line
from kaflow_engine.sql.tables.kinds import ORDER, Kind, beside
from kaflow_engine.sql.transforms.attached import AttachedText
from kaflow_engine.sql.transforms.rows import transform_of

Named = Mapping[str, exp.Query]
"""Queries by the names that stand for them, in lower case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTopic:
    """What is read where a name stands for no query."""

    topic: str
    reading: str | None = None
    """The relation whose name it is; None: it is that of the topic."""
    key: tuple[str, ...] | None = None
    """The columns that are the key of its rows; None: of events."""
    operation: str | None = None
    """What says of each record what it does to a row, where these are read as changes."""
    is_dimension: bool = False
    """It is listed under `state.dimensions`, and is read as no table."""
    key_type: str = TEXT
    """The type of `_key`."""
    null_rows: bool = False
    """Its null values are rows of NULLs."""
    attached: AttachedText | None = None
    """It is a table of a database whose rows are looked up there."""

    @property
    def kind(self) -> Kind:
        """Of its rows."""
        if self.attached is not None:
            return "dimension"  # it never drives
        if self.key is None:
            return "dimension" if self.is_dimension else "events"
        return "changes" if self.operation else "table"


Topics = Callable[[str], ReadTopic]
"""What a name means that is none of a query, as its author wrote it."""


@dataclass(frozen=True, kw_only=True)
class Names:
    """What names mean wherever they stand in the queries of a pipeline."""

    at: Location | None
    relations: Named
    topics: Topics

    def means(self, name: str, known: Named) -> tuple[exp.Query, Named] | None:
        """Return the query that a name stands for, and the WITH that it sees; None of a topic.

        Args:
            name: In lower case.
            known: The queries of each WITH around it.
        """
        if name in known:
            return known[name], {other: query for other, query in known.items() if other != name}
        return (self.relations[name], {}) if name in self.relations else None

    def inside(self, query: exp.Query, known: Named) -> Named:
        """Return the queries of each WITH that a query sees: its own, and those around it.

        Raises:
            SqlError: One is recursive, or no query.
        """
        found: dict[str, exp.Query] = {}
        clause: exp.With | None = query.args.get("with_") or query.args.get("with")
        ctes: list[exp.CTE] = clause.expressions if clause else []
        for cte in ctes:
            plain = isinstance(cte.this, exp.Select | exp.SetOperation)
            if not plain or (clause and clause.args.get("recursive")):
                raise SqlError(
                    f"the WITH query '{cte.alias}' is not a plain SELECT",
                    at_line(self.at, line_of(cte)),
                    "write it as SELECT … FROM one topic, or as a pipeline of its own",
                )
            found[cte.alias.lower()] = cte.this
        return {**known, **found}

    def attached(self, node: exp.Expr, known: Named) -> AttachedText | None:
        """Return the table of a database that stands after FROM or JOIN; None of anything else."""
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier | exp.Dot):
            return None
        name = topic_of(node)
        return None if self.means(name.lower(), known) else self.topics(name).attached

    def kind(self, node: exp.Expr, known: Named) -> Kind:
        """Return the kind of what stands after FROM or JOIN: a table where all topics behind it
        are, or where it is grouped, save for windows whose rows leave once."""
        query: exp.Expr = node.this if isinstance(node, exp.Subquery) else node
        if isinstance(node, exp.Table):
            topic = topic_of(node)
            found = self.means(topic.lower(), known)
            if found is None:
                return self.topics(topic).kind
            query, known = found
        while isinstance(query, exp.Subquery):
            query = query.this
        if isinstance(query, exp.SetOperation):
            known = self.inside(query, known)
            sides = {self.kind(exp.Subquery(this=each), known) for each in _sides(query)}
            return "table" if sides == {"table"} else "events"
        clause = query.args.get("from_") or query.args.get("from")
        if not isinstance(query, exp.Select) or clause is None:
            return "events"
        if changes_of(query) is not None or transform_of(query) is not None:
            return "events"
        if leaves_once(query):
            return "events"
        if is_grouped(query) or row_number_of(query) is not None:
            return "table"
        known = self.inside(query, known)
        whole: Kind = self.kind(clause.this, known)
        joins: list[exp.Join] = query.args.get("joins") or []
        for join in (join for join in joins if not is_unnest(join)):
            side = (join.side or "").upper()
            before, joined = beside(whole, self.kind(join.this, known))
            drives = joined == "events" or (joined == "changes" and side in ("", "RIGHT"))
            whole = ORDER[min(map(ORDER.index, (before, joined)))] if drives else before
        return whole


def topic_of(node: exp.Table) -> str:
    """Return the name after FROM or JOIN as a topic has it."""
    return ".".join(part.name for part in node.parts)


def _sides(query: exp.SetOperation) -> tuple[exp.Expr, exp.Expr]:
    return query.this, query.expression
