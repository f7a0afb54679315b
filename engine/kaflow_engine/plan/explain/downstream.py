"""Downstream impact: pipelines that read an output of a changed one."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import columns_of, projects_of, topic_sinks
from kaflow_engine.flow.sinks import TopicSink


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """A pipeline that reads a topic of a changed one."""

    pipeline: str
    topic: str
    breaking: tuple[str, ...] = ()
    """What it uses and will not find as it was."""
    others: tuple[str, ...] = ()
    """What changes besides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """What a pipeline uses of its topics."""

    pipeline: str
    columns: Mapping[str, frozenset[str]]
    """By topic, as those are called where they are written."""

    @classmethod
    def of(cls, name: str, plan: Flow) -> "Reader":
        """Return what a pipeline uses under a plan."""
        topics = [topic for topic in plan.sources if topic.connector is None]
        columns = {str(t.place): frozenset(column.name for column in t.columns) for t in topics}
        return cls(pipeline=name, columns=columns)


def touched(
    old: Flow, new: Flow | None, readers: Sequence[Reader], written: Collection[str]
) -> tuple[Touched, ...]:
    """Return the readers of a pipeline's topics for which something changes, topic by topic.

    Args:
        old: The plan that runs.
        new: The plan that will; None: the pipeline was removed.
        readers: All pipelines of the project but this one.
        written: The topics that others write.
    """
    after = {sink.target: _written(new, sink) for sink in topic_sinks(new)} if new else {}
    found: list[Touched] = []
    for sink in topic_sinks(old):
        topic = sink.target
        for reader in readers:
            if topic not in reader.columns:
                continue
            if topic not in after:
                gone = () if topic in written else (f"no one writes topic '{topic}' any more",)
                change = Touched(pipeline=reader.pipeline, topic=topic, breaking=gone)
            else:
                lines = list(_changes(_written(old, sink), after[topic], reader.columns[topic]))
                change = Touched(
                    pipeline=reader.pipeline,
                    topic=topic,
                    breaking=tuple(text for breaks, text in lines if breaks),
                    others=tuple(text for breaks, text in lines if not breaks),
                )
            if change.breaking or change.others:
                found.append(change)
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """What a plan writes to a topic."""

    format: str
    key: str | None
    key_format: str
    columns: Mapping[str, tuple[str, tuple[str, ...]]]
    """Type and SQL of each branch, by name."""


def _written(flow: Flow, sink: TopicSink) -> _Written:
    names = {column.name for column in columns_of(flow, sink)}
    columns = (project.columns for project in projects_of(flow, sink))
    branches = [[each for each in some if each[0].name in names] for some in columns]
    return _Written(
        format=sink.format,
        key="_key" if sink.takes_bytes else sink.key,
        key_format=sink.key_format,
        columns={
            parts[0][0].name: (parts[0][0].type, tuple(sql for _, sql in parts))
            for parts in zip(*branches, strict=True)
        },
    )


def _changes(old: _Written, new: _Written, used: frozenset[str]) -> Iterator[tuple[bool, str]]:
    """Yield what changes in the rows of a topic, and whether a reader is broken by it."""
    if old.format != new.format:
        yield True, f"records are {new.format} from now on, {old.format} before"
    for name, (kind, sql) in old.columns.items():
        uses = name in used
        if name not in new.columns:
            yield uses, f"column '{name}' is gone{', and it uses it' if uses else ''}"
        elif new.columns[name][0] != kind:
            yield uses, f"column '{name}' is {new.columns[name][0]}, was {kind}"
        elif new.columns[name][1] != sql and uses:
            yield False, f"column '{name}' is computed otherwise"
    for name in new.columns:
        if name not in old.columns:
            yield False, f"column '{name}' is added"
    if old.key_format != new.key_format and old.key is not None:
        yield True, f"keys are {new.key_format} from now on, {old.key_format} before"
    if old.key != new.key:
        yield False, f"the key is '{new.key}', was '{old.key}'"
