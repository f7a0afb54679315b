"""Pipelines as Dagster needs them: read and explained once, kept as JSON, cheap to load."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from pydantic import TypeAdapter

from kaflow_dagster.assets.groups import folder_group
from kaflow_engine.api.errors import ModelError, without_secrets
from kaflow_engine.api.plan import Explanation, OutputPart, draw, explain
from kaflow_engine.api.project import (
    CheckedPipeline,
    Config,
    PipelineSpec,
    Write,
    check_project,
    checks_of,
    load_config,
    load_pipeline,
    with_brought,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckView:
    """A check of what a pipeline writes."""

    name: str
    about: str
    is_error: bool
    """Whether its failure is more than a warning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputView:
    """What an author says of an output besides its rows."""

    description: str | None = None
    columns: dict[str, str]
    """Descriptions by name."""
    checks: tuple[CheckView, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineView:
    """One pipeline file."""

    name: str
    file: str
    """Absolute."""
    line: int
    folder: str
    """Under which it is shown where it names no group."""
    front_end: str = ""
    """Which one its file belongs to."""
    partitions: int | None = None
    """Of its state, where its author says how many."""
    group: str | None = None
    """Pipelines of one group share a run, and are shown together."""
    version: str = ""
    """Changes with the file and with the configuration."""
    query: str = ""
    owners: tuple[str, ...] = ()
    tags: dict[str, str]
    meta: dict[str, str] = field(default_factory=dict[str, str])
    topics: dict[str, str] = field(default_factory=dict[str, str])
    """Descriptions of input topics, and of other sources."""
    outputs: tuple[OutputView, ...] = ()
    """In the order of the file, as those of the explanation."""
    explanation: Explanation | None = None
    drawing: str = ""
    problem: str | None = None
    """What is wrong with the file, with its place; such a pipeline cannot run."""

    @property
    def asset_group(self) -> str:
        """The group of its assets."""
        return self.group or self.folder

    @property
    def ends(self) -> bool:
        """Whether all that it reads has an end: a run is a job, and no stream."""
        read = self.explanation.topics if self.explanation else ()
        sources = [topic.source for topic in read if not topic.looked_up]
        return bool(sources) and all(source is not None and source.ends for source in sources)

    @property
    def written(self) -> tuple["PipelineOutput", ...]:
        """What it writes; nothing where it is broken."""
        parts = self.explanation.outputs if self.explanation else ()
        return tuple(
            PipelineOutput(pipeline=self, part=part, about=about)
            for part, about in zip(parts, self.outputs, strict=True)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOutput:
    """An output with the pipeline that writes it."""

    pipeline: PipelineView
    part: OutputPart
    about: OutputView

    @property
    def checks(self) -> tuple[str, ...]:
        """The names of its checks."""
        return tuple(check.name for check in self.about.checks)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectView:
    """All pipelines of a project."""

    paths: tuple[str, ...]
    """Files and folders that were read, absolute."""
    config: str | None
    """The configuration file, absolute."""
    pipelines: tuple[PipelineView, ...]
    problems: tuple[str, ...] = ()
    """What is wrong with the configuration, with paths, and between files."""

    def load_config(self) -> Config:
        """Read the configuration again.

        Raises:
            ModelError: It holds mistakes.
        """
        return load_config(None if self.config is None else Path(self.config))

    def load(self, pipeline: str, config: Config) -> PipelineSpec:
        """Read a pipeline again.

        Raises:
            ModelError: It holds mistakes, or is gone.
        """
        return load_pipeline([Path(path) for path in self.paths], pipeline, config)

    def to_json(self) -> str:
        """Return the view as JSON."""
        return _ADAPTER.dump_json(self).decode()

    @staticmethod
    def of_json(text: str) -> "ProjectView":
        """Return a view that was written by `to_json`.

        Raises:
            ValueError: By another version of this package.
        """
        return _ADAPTER.validate_json(text)


_ADAPTER = TypeAdapter(ProjectView)


def view_project(paths: Sequence[Path], config_path: Path | None = None) -> ProjectView:
    """Read all pipeline files of a project; what is wrong in them becomes part of the view.

    Args:
        paths: Files and folders.
        config_path: The configuration file; None: defaults and the environment.
    """
    roots = [path.absolute() for path in paths]
    places = tuple(str(root) for root in roots)
    file = None if config_path is None else str(config_path.absolute())
    try:
        config = load_config(config_path)
    except ModelError as error:
        return ProjectView(paths=places, config=file, pipelines=(), problems=(str(error),))
    found = check_project(roots, config)
    view = ProjectView(
        paths=places,
        config=file,
        pipelines=tuple(
            _view(each, folder_group(Path(each.at.file), roots), config) for each in found.pipelines
        ),
        problems=tuple(str(problem) for problem in found.others),
    )
    return ProjectView.of_json(without_secrets(view.to_json()))


def _view(checked: CheckedPipeline, folder: str, config: Config) -> PipelineView:
    spec, file, line = checked.spec, str(checked.at.file), checked.at.line or 1
    mistakes = checked.mistakes
    if spec is not None and not mistakes:
        mistakes = tuple(_partitioned_otherwise(spec))
    if spec is None or mistakes:
        return PipelineView(
            name=checked.name or Path(file).stem,
            file=file,
            line=line,
            folder=folder,
            front_end=checked.front_end,
            tags={},
            problem="\n".join(str(mistake) for mistake in mistakes),
        )
    config = with_brought(config, [spec])
    explanation = explain(spec, config)
    return PipelineView(
        name=spec.name,
        file=file,
        line=line,
        folder=folder,
        front_end=checked.front_end,
        partitions=spec.partitions,
        group=spec.group,
        version=version_of(spec, config),
        query=_sql(spec),
        owners=spec.owners,
        tags=spec.tags,
        meta=spec.meta,
        topics={n: t.description for n, t in spec.said_of_topics.items() if t.description},
        outputs=tuple(_output(spec, write) for write in spec.writes),
        explanation=explanation,
        drawing="\n".join(draw(explanation)),
    )


def _partitioned_otherwise(spec: PipelineSpec) -> Iterator[ModelError]:
    """A backfill fills all tables of a pipeline, and an asset of it has one kind of partitions."""
    tables = [write for write in spec.writes if write.output.table is not None]
    for write in tables[1:]:
        first = tables[0]
        if write.output.partition != first.output.partition:
            yield ModelError(
                f"table '{write.output.table}' has a partition for each {write.output.partition}, "
                f"and table '{first.output.table}' one for each {first.output.partition}: Dagster "
                "fills both in one backfill",
                spec.place(*write.at, "partition"),
                "give them the same partition, or write one of them in another pipeline",
            )


def _output(spec: PipelineSpec, write: Write) -> OutputView:
    return OutputView(
        description=write.description,
        columns={name: c.description for name, c in write.columns.items() if c.description},
        checks=tuple(
            CheckView(
                name=check.name,
                about=check.description or f"{check.expectation}: {_said(check.arguments)}",
                is_error=check.severity == "error",
            )
            for check in checks_of(spec, write)
        ),
    )


def _sql(spec: PipelineSpec) -> str:
    """Return the query of a pipeline; of several outputs, all that is written, with names."""
    if spec.query is not None:
        return spec.query
    parts = [
        f"-- relation {name}\n{(each.query or f'FROM {each.topic or each.from_}').strip()}"
        for name, each in spec.queried.items()
    ]
    parts += [
        f"-- relation {name}, by a {each.type}\nFROM {each.from_}"
        for name, each in spec.transforms.items()
    ]
    parts += [
        f"-- relation {name}, a set of {each.key}\nFROM {each.from_}"
        for name, each in spec.dynamic_tables.items()
    ]
    parts += [
        f"-- {write.target}\n{(write.query or f'FROM {write.relation}').strip()}"
        for write in spec.writes
    ]
    return "\n\n".join(parts)


def _said(arguments: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in arguments.items())


def version_of(spec: PipelineSpec, config: Config) -> str:
    """Return what tells two versions of a pipeline apart."""
    texts = [spec.model_dump_json(), config.model_dump_json()]
    return sha256("\n".join(texts).encode()).hexdigest()[:12]
