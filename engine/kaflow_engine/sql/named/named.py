"""Named relations as their authors wrote them: queries, readings, and rows of others."""

from dataclasses import dataclass

from sqlglot import exp

from kaflow_engine.errors import Location
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.sql.groups.changes import ChangesText, reading_changes
from kaflow_engine.sql.groups.first_rows import with_last_rows
from kaflow_engine.sql.groups.runs.runs import RunText
from kaflow_engine.sql.named.dynamic_tables import dynamic_tables
from kaflow_engine.sql.named.transforms import transform_text
from kaflow_engine.sql.transforms.rows import TransformText, transformed


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedQuery:
    """A relation as its author wrote it."""

    name: str
    sql: str
    at: Location
    """Where its name stands."""
    start: Location
    """Where its SQL begins."""
    below: str | None = None
    """What its runs are made of, where it has any; its SQL is that of `run` then."""
    run: RunText | None = None
    windows_change: bool = False
    """Rows of its windows leave before these are closed, and replace each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTopic:
    """A relation that is a reading of a topic."""

    name: str
    topic: str
    at: Location
    """Where its name stands."""

    @property
    def tree(self) -> exp.Query:
        """The query that reads the topic under its own name."""
        return whole(self.topic)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRows:
    """A relation that is the last row of each key of another one."""

    name: str
    of: str
    key: tuple[str, ...]
    at: Location
    """Where its name stands."""

    @property
    def tree(self) -> exp.Query:
        """The query of these rows; one without a key is none of them."""
        columns = [exp.column(exp.to_identifier(name, quoted=True)) for name in self.key]
        known = exp.and_(*(column.is_(exp.null()).not_() for column in columns))
        return with_last_rows(whole(self.of).where(known), columns)

    def counted_from(self, start: Location) -> exp.Query:
        """Return that query as if it stood at the name, with lines counted from `start`."""
        return _standing(self.tree, self.at, start)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSet:
    """A relation that is the set of the values which a column has in another one."""

    name: str
    of: str
    key: str
    at: Location
    """Where its name stands."""

    @property
    def tree(self) -> exp.Query:
        """The query of these values; NULL is none of them."""
        column = exp.column(exp.to_identifier(self.key, quoted=True))
        known = column.copy().is_(exp.null()).not_()
        of = exp.Table(this=exp.to_identifier(self.of, quoted=True))
        return exp.select(column).from_(of).where(known).group_by(column.copy())

    def counted_from(self, start: Location) -> exp.Query:
        """Return that query as if it stood at the name, with lines counted from `start`."""
        return _standing(self.tree, self.at, start)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedChanges:
    """A relation whose rows are the changes of another one, which is a table."""

    name: str
    of: str
    deletes: bool
    at: Location
    """Where its name stands."""

    @property
    def tree(self) -> exp.Query:
        """The query of these rows."""
        said = ChangesText(name=self.name, of=self.of, deletes=self.deletes)
        return reading_changes(whole(self.of), said)

    def counted_from(self, start: Location) -> exp.Query:
        """Return that query as if it stood at the name, with lines counted from `start`."""
        return _standing(self.tree, self.at, start)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTransform:
    """A relation whose rows are made of those of another one, each alone."""

    said: TransformText

    @property
    def name(self) -> str:
        """What it is called."""
        return self.said.name

    @property
    def at(self) -> Location:
        """Where its name stands."""
        return self.said.at

    @property
    def tree(self) -> exp.Query:
        """The query of these rows."""
        return transformed(whole(self.said.of), self.said)

    def counted_from(self, start: Location) -> exp.Query:
        """Return that query as if it stood at the name, with lines counted from `start`."""
        return _standing(self.tree, self.at, start)


Named = NamedQuery | NamedTopic | NamedRows | NamedSet | NamedChanges | NamedTransform


def _standing(tree: exp.Query, at: Location, start: Location) -> exp.Query:
    for node in tree.walk():
        node.meta["line"] = (at.line or 0) - (start.line or 0) + 1
    return tree


def whole(name: str) -> exp.Select:
    """Return the query of all that stands behind a name."""
    return exp.select("*").from_(exp.Table(this=exp.to_identifier(name, quoted=True)))


def named_queries(spec: PipelineSpec) -> tuple[NamedQuery, ...]:
    """Return the relations that are queries."""
    return tuple(
        NamedQuery(
            name=name,
            sql=relation.query,
            at=spec.place("relations", name),
            start=spec.place("relations", name, "query"),
            below=relation.from_,
            run=_run_of(spec, name),
            windows_change=relation.emission is not None
            and (relation.emission.opens_windows or relation.emission.late_updates),
        )
        for name, relation in spec.queried.items()
        if relation.query is not None
    )


def named_topics(spec: PipelineSpec) -> tuple[NamedTopic, ...]:
    """Return the relations that are readings of topics."""
    return tuple(
        NamedTopic(name=name, topic=relation.topic, at=spec.place("relations", name))
        for name, relation in spec.readings.items()
        if relation.topic is not None
    )


def named_rows(
    spec: PipelineSpec,
) -> tuple[NamedRows | NamedSet | NamedChanges | NamedTransform, ...]:
    """Return the relations whose rows are those of others, in another way.

    Raises:
        ModelError: The text of a transform cannot be read.
    """
    transforms = (NamedTransform(said=transform_text(spec, name)) for name in spec.transforms)
    read = (
        NamedChanges(
            name=name,
            of=relation.from_,
            deletes=relation.deletes,
            at=spec.place("relations", name),
        )
        if relation.as_ == "append"
        else NamedRows(
            name=name, of=relation.from_, key=relation.key, at=spec.place("relations", name)
        )
        for name, relation in spec.queried.items()
        if relation.from_ is not None and relation.batch is None
    )
    sets = (
        NamedSet(name=each.name, of=each.of, key=each.key, at=each.at)
        for each in dynamic_tables(spec)
        if not each.attached
    )
    return (*read, *sets, *transforms)


def _run_of(spec: PipelineSpec, name: str) -> RunText | None:
    """Return what is said of the runs that a relation is made of; None: it is no such relation."""
    relation = spec.queried[name]
    if relation.batch is None or relation.query is None:
        return None
    return RunText(
        sql=relation.query.strip().rstrip(";"),
        start=spec.place("relations", name, "query"),
        size=relation.batch.size,
        every=relation.batch.every,
        per_partition=relation.batch.per == "partition",
    )
