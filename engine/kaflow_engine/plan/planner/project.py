"""All pipelines of a project, checked: what is wrong in the files, alone and together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kaflow_engine.errors import Location, ModelError, UnknownName
from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.with_brought import with_brought
from kaflow_engine.model.files.yaml_file import in_order, raise_as_found
from kaflow_engine.model.names import topic_target
from kaflow_engine.model.outputs.output_specs import Write
from kaflow_engine.model.outputs.sink_specs import FilesSpec
from kaflow_engine.model.pipelines.loader import Reading
from kaflow_engine.model.project import Project, ProjectFiles, read_project
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.dependencies import circles, connected
from kaflow_engine.plan.planner.functions import function_kind, use_functions
from kaflow_engine.plan.planner.inputs.kafka_topics import home_cluster, letters_apart
from kaflow_engine.plan.planner.pipeline_plan import check_draft, check_pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPipeline:
    """A file that holds a pipeline, and all that was found about it."""

    at: Location
    name: str | None
    """None where the file does not say it."""
    spec: PipelineSpec | None
    """Only of use where there are no mistakes."""
    mistakes: tuple[ModelError, ...] = ()
    notices: tuple[ModelError, ...] = ()
    front_end: str = ""
    """The name of the front end that its file belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedProject:
    """What was found about all files."""

    pipelines: tuple[CheckedPipeline, ...] = ()
    """By name."""
    others: tuple[ModelError, ...] = ()
    """What is wrong with paths, and between files."""
    notices: tuple[ModelError, ...] = ()
    """What is doubtful, and in no file alone."""

    @property
    def mistakes(self) -> tuple[ModelError, ...]:
        """All mistakes, file by file."""
        by_file = sorted(self.pipelines, key=lambda each: each.at)
        return (*(mistake for each in by_file for mistake in each.mistakes), *self.others)


def check_project(
    paths: Sequence[Path],
    config: Config | None = None,
    variables: Mapping[str, str] | None = None,
) -> CheckedProject:
    """Check all that files can have wrong: their form, their SQL, and how they fit together.

    Args:
        paths: As `read_project` takes them.
        config: For defaults; the file it was read from is not a pipeline.
        variables: Values for `${VAR}`; None: those that the configuration allows.
    """
    use_functions(config or Config())
    files = read_project(paths, config, variables, function_kind)
    readings = _connected(files, config)
    found = [_check(reading, config) for reading in readings]
    specs = [reading.spec for reading in readings if reading.spec and not reading.mistakes]
    others = [
        *files.others,
        *_two_formats(specs),
        *_one_table_twice(specs),
        *_rows_among_dead_letters(specs),
        *_groups_called_as_pipelines(specs),
    ]
    right = [each.spec for each in found if each.spec and not each.mistakes]
    by_name = sorted(found, key=lambda each: (each.name or "", each.at))
    return CheckedProject(
        pipelines=tuple(by_name),
        others=tuple(others),
        notices=(*_unused(files.unused), *_circles(right)),
    )


def load_checked(
    paths: Sequence[Path],
    config: Config | None = None,
    variables: Mapping[str, str] | None = None,
) -> Project:
    """Read all pipeline files and check them, so that every mistake is told in one go.

    Raises:
        ModelError: The one mistake.
        Problems: All of several.
    """
    project = check_project(paths, config, variables)
    raise_as_found(project.mistakes)
    specs = [each.spec for each in project.pipelines if each.spec is not None]
    return Project(pipelines=tuple(specs), config=config or Config(), notices=project.notices)


def load_one(
    paths: Sequence[Path],
    name: str,
    config: Config | None = None,
    variables: Mapping[str, str] | None = None,
    at: Location | None = None,
) -> PipelineSpec:
    """Read a project and check one of its pipelines; mistakes in others do not matter.

    Args:
        paths: As `read_project` takes them.
        name: Of the pipeline.
        config: For defaults; the file it was read from is not a pipeline.
        variables: Values for `${VAR}`; None: those that the configuration allows.
        at: Where the pipeline is asked for.

    Raises:
        UnknownName: There is no such pipeline.
        ModelError: The one mistake in it.
        Problems: All of several.
    """
    use_functions(config or Config())
    files = read_project(paths, config, variables, function_kind)
    readings = _connected(files, config)
    found = next((reading for reading in readings if reading.name == name), None)
    if found is None:
        names = [reading.name for reading in files.readings if reading.name]
        raise UnknownName("pipeline", name, names, at)
    checked = _check(found, config)
    raise_as_found(checked.mistakes)
    assert checked.spec is not None
    return checked.spec


def _connected(files: ProjectFiles, config: Config | None) -> list[Reading]:
    """Let pipelines know the columns that others of the project write."""
    everything = (*files.readings, *files.around)
    sound = [each.spec for each in everything if each.spec and each.name and not each.mistakes]
    if len({spec.name for spec in sound}) < len(sound):
        return list(files.readings)  # two of one name are a mistake, told elsewhere
    specs = {spec.name: spec for spec in connected(sound, config or Config())}
    return [
        replace(each, spec=specs[each.spec.name]) if each.spec and not each.mistakes else each
        for each in files.readings
    ]


def _check(reading: Reading, config: Config | None) -> CheckedPipeline:
    checked = CheckedPipeline(
        at=reading.at,
        name=reading.name,
        spec=reading.spec,
        mistakes=reading.mistakes,
        front_end=reading.front_end,
    )
    if reading.spec is None:
        return checked
    try:
        config = with_brought(config or Config(), [reading.spec])
        if not reading.mistakes:
            better = (each.notice for each in reading.spec.suggestions)
            return replace(checked, notices=(*check_pipeline(reading.spec, config), *better))
        check_draft(reading.spec, config)
    except ModelError as error:
        return replace(checked, mistakes=in_order([*reading.mistakes, error]))
    return checked


def _two_formats(specs: Sequence[PipelineSpec]) -> Iterator[ModelError]:
    """Several pipelines may write one topic, but whoever reads it knows one format."""
    first: dict[str, tuple[PipelineSpec, Write]] = {}
    for spec, write in _writes(specs):
        form = write.output.format
        if write.output.topic is None:
            continue
        other, before = first.setdefault(write.target, (spec, write))
        if before.output.format != form:
            yield ModelError(
                f"topic '{write.target}' is written as {form} here and as {before.output.format} "
                f"at {other.place(*before.at, 'format')}",
                spec.place(*write.at, "format"),
                "write one format, or give one of the pipelines another output topic",
            )


def _one_table_twice(specs: Sequence[PipelineSpec]) -> Iterator[ModelError]:
    """A backfill replaces partitions, so a table has one writer; files have one ledger."""
    first: dict[str, tuple[PipelineSpec, Write]] = {}
    for spec, write in _writes(specs):
        name, kept_in = _kept(write)
        if name is None:
            continue
        other, before = first.setdefault(name, (spec, write))
        if other is not spec:
            was = _kept(before)[1]
            yield ModelError(
                f"pipeline '{other.name}' writes {was} '{name}' too, at "
                f"{other.place(*before.at, was)}",
                spec.place(*write.at, kept_in),
                f"give one of them another {kept_in}",
            )


def _kept(write: Write) -> tuple[str | None, str]:
    """Return the table or folder that only one pipeline writes, and which of them it is; folders
    lie beside the tables of the warehouse."""
    if isinstance(write.sink, FilesSpec):
        return write.sink.folder, "folder"
    if write.sink is not None and write.sink.is_shared:
        return write.target, "table"
    return write.output.table, "table"


def _rows_among_dead_letters(specs: Sequence[PipelineSpec]) -> Iterator[ModelError]:
    """Rows of one pipeline must be told apart from dead letters of another."""
    for spec in specs:
        if letters_apart(spec) is not None:
            continue
        topic = spec.dead_letters.topic or f"{spec.name}.dead_letters"
        target = topic_target(topic, _home(spec))
        found = (
            w
            for w, write in _writes(specs)
            if write.output.topic is not None and write.target == target and w is not spec
        )
        writer = next(found, None)
        if writer is not None:
            yield ModelError(
                f"the dead letters go to '{topic}', where pipeline '{writer.name}' writes its rows",
                spec.place("dead_letters", "topic"),
                "give the dead letters a topic of their own with dead_letters.topic",
            )


def _home(spec: PipelineSpec) -> str:
    try:
        return home_cluster(spec)
    except ModelError:
        return ""  # the query is wrong, which is reported elsewhere


def _writes(specs: Sequence[PipelineSpec]) -> Iterator[tuple[PipelineSpec, Write]]:
    """Return every output of every pipeline."""
    return ((spec, write) for spec in specs for write in spec.writes)


def _groups_called_as_pipelines(specs: Sequence[PipelineSpec]) -> Iterator[ModelError]:
    """What runs together has one name, and a pipeline that runs alone has its own."""
    alone = {spec.name: spec for spec in specs if spec.group is None}
    for spec in specs:
        if spec.group in alone:
            yield ModelError(
                f"group '{spec.group}' is called as a pipeline that is not in it, at "
                f"{alone[spec.group].place('name')}",
                spec.place("group"),
                "call the group otherwise",
            )


def _unused(configurations: Sequence[Path]) -> Iterator[ModelError]:
    for file in configurations:
        hint = "name it before the pipelines, or with --config"
        yield ModelError("this configuration is not used", Location(str(file)), hint)


def _circles(specs: Sequence[PipelineSpec]) -> Iterator[ModelError]:
    """Say which pipelines feed each other: a WHERE may end it, but nothing else does."""
    for (spec, write), *others in circles(specs):
        at = spec.place(*write.at, "topic")
        way = f"{spec.name} → '{write.target}'"
        for other, then in others:
            place = other.place(*then.at, "topic")
            way += f" → {other.name} ({place}) → '{then.target}'"
        yield ModelError(
            f"these pipelines feed each other: {way} → {spec.name}",
            at,
            "rows go round until a WHERE stops them; write to a topic that none of them reads",
        )
