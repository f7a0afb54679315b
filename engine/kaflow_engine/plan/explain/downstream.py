"""Downstream impact: pipelines that read the output of a changed one."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import only_project, only_sink, output_format, output_topic


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """A pipeline that reads the topic of a changed one."""

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
    """By topic."""

    @classmethod
    def of(cls, name: str, plan: Flow) -> "Reader":
        """Return what a pipeline uses under a plan."""
        columns = {t.name: frozenset(column.name for column in t.columns) for t in plan.sources}
        return cls(pipeline=name, columns=columns)


def touched(
    old: Flow, new: Flow | None, readers: Sequence[Reader], written: Collection[str]
) -> tuple[Touched, ...]:
    """Return the readers of a pipeline's topic for which something changes.

    Args:
        old: The plan that runs.
        new: The plan that will; None: the pipeline was removed.
        readers: All pipelines of the project but this one.
        written: The topics that others write.
    """
    topic = output_topic(old)
    if topic is None:
        return ()
    found: list[Touched] = []
    for reader in readers:
        if topic not in reader.columns:
            continue
        if new is None or output_topic(new) != topic:
            gone = () if topic in written else (f"no one writes topic '{topic}' any more",)
            change = Touched(pipeline=reader.pipeline, topic=topic, breaking=gone)
        else:
            lines = list(_changes(old, new, reader.columns[topic]))
            change = Touched(
                pipeline=reader.pipeline,
                topic=topic,
                breaking=tuple(text for breaks, text in lines if breaks),
                others=tuple(text for breaks, text in lines if not breaks),
            )
        if change.breaking or change.others:
            found.append(change)
    return tuple(found)


def _changes(old: Flow, new: Flow, used: frozenset[str]) -> Iterator[tuple[bool, str]]:
    """Yield what changes in the rows of a topic, and whether a reader is broken by it."""
    form, now = output_format(old), output_format(new)
    if form != now:
        yield True, f"records are {now} from now on, {form} before"
    before = {column.name: (column.type, sql) for column, sql in only_project(old).columns}
    after = {column.name: (column.type, sql) for column, sql in only_project(new).columns}
    for name, (kind, sql) in before.items():
        uses = name in used
        if name not in after:
            yield uses, f"column '{name}' is gone{', and it uses it' if uses else ''}"
        elif after[name][0] != kind:
            yield uses, f"column '{name}' is {after[name][0]}, was {kind}"
        elif after[name][1] != sql and uses:
            yield False, f"column '{name}' is computed otherwise"
    for name in after:
        if name not in before:
            yield False, f"column '{name}' is added"
    was, key = only_sink(old).key, only_sink(new).key
    if was != key:
        yield False, f"the key is '{key}', was '{was}'"
