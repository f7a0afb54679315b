"""`kaflow processor create`: checks a processor, and copies it into the project, stopped."""

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from kaflow_engine.cli.options import config_option, configuration, set_option
from kaflow_engine.cli.output import say_notices
from kaflow_engine.cli.processor.files import (
    ProcessorFiles,
    files_at,
    has_key,
    is_processor_file,
    project_folder,
    with_key,
)
from kaflow_engine.cli.validate import connected
from kaflow_engine.errors import KaflowError, Location, ModelError, UnknownName
from kaflow_engine.model.config import Config
from kaflow_engine.model.files.yaml_file import read_text
from kaflow_engine.model.lenses.front_end import SQL, YAML
from kaflow_engine.plan.planner.project import CheckedProject, check_project


@click.command("create")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--name", help="Its name; default: that of the file, or `name` of its YAML.")
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the project; default: `pipelines` beside the configuration.",
)
@click.option("--runners", type=click.IntRange(1, 256), help="How many tasks share the work.")
@click.option("--no-connect", is_flag=True, help="Do not ask brokers and registry.")
@config_option
@set_option
def create(
    file: Path,
    name: str | None,
    into: Path | None,
    runners: int | None,
    no_connect: bool,
    config_path: Path | None,
    settings: tuple[str, ...],
) -> None:
    """Check a processor as `kaflow validate --connect` does, and add it to the project, stopped."""
    config = configuration(config_path, settings)
    folder = project_folder(config, into, "--into")
    source = _source(file)
    with TemporaryDirectory(prefix="kaflow-") as scratch:
        staged = _staged(source, Path(scratch), name, runners)
        taken = files_at(folder / f"{staged.stem.name}{SQL}").all
        if taken:
            hint = "take another one with --name, or `kaflow processor delete` it"
            raise ModelError("there is a processor of this name", Location(str(taken[0])), hint)
        project = check_project([folder, Path(scratch)], config)
        called = _checked(project, config, staged, source, connect=not no_connect)
        made = _copied(staged, folder)
    click.echo(f"created {', '.join(map(str, made))}: stopped")
    click.echo(f"next: kaflow processor start {called}")


def _source(file: Path) -> ProcessorFiles:
    if not is_processor_file(file):
        hint = "a processor is called <name>.processor.sql"
        raise ModelError("this is not the file of a processor", Location(str(file)), hint)
    found = files_at(file)
    if not file.is_file():
        near = [each.name for each in file.parent.glob(f"*{SQL}")] if file.parent.is_dir() else []
        raise UnknownName("file", file.name, near, Location(str(file.parent)))
    return found


def _staged(
    source: ProcessorFiles, scratch: Path, name: str | None, runners: int | None
) -> ProcessorFiles:
    """Write the files as they are going to be."""
    wanted = source.stem.name if name is None else name
    stem = scratch / wanted
    if stem.parent != scratch or not wanted:
        raise ModelError(f"'{name}' is no name of a file", hint="name it without '/'")
    sql = stem.with_name(stem.name + SQL) if source.sql else None
    if sql is not None and source.sql is not None:
        sql.write_text(read_text(source.sql), encoding="utf-8")
    about = read_text(source.yaml) if source.yaml else ""
    shown = source.yaml or source.stem.with_name(source.stem.name + YAML[0])
    if name is not None and has_key(about, "name", shown):
        about = with_key(about, "name", name, shown)
    if runners is not None:
        about = with_key(about, "runners", runners, shown)
    yaml = stem.with_name(stem.name + YAML[0]) if about else None
    if yaml is not None:
        yaml.write_text(about, encoding="utf-8")
    return ProcessorFiles(stem=stem, sql=sql, yaml=yaml)


def _checked(
    project: CheckedProject,
    config: Config,
    staged: ProcessorFiles,
    source: ProcessorFiles,
    *,
    connect: bool,
) -> str:
    """Return the name of a processor that nothing is wrong with; else say all that is."""
    files = {str(each) for each in staged.all}
    (own,) = [each for each in project.pipelines if each.at.file in files]
    others = [each for each in project.others if each.at and each.at.file in files]
    same = [each for each in project.pipelines if each.name == own.name and each is not own]
    if same:
        hint = "take another one with --name"
        others = [ModelError(f"the pipeline at {same[0].at} has this name", own.at, hint)]
    mistakes: list[KaflowError] = [*own.mistakes, *others]
    notices: list[KaflowError] = list(own.notices)
    if connect and not mistakes:
        found = connected(project, config, own.name)
        notices = [notice for each in found.values() for notice in each.notices]
        mistakes = [mistake for each in found.values() for mistake in each.mistakes]
    say_notices(_of_source(notices, staged, source))
    for mistake in _of_source(mistakes, staged, source):
        click.echo(f"error: {mistake}", err=True)
    if mistakes:
        click.echo("nothing was created", err=True)
        raise click.exceptions.Exit(mistakes[0].exit_code)
    assert own.name is not None
    return own.name


def _of_source(
    errors: Iterable[KaflowError], staged: ProcessorFiles, source: ProcessorFiles
) -> list[KaflowError]:
    """Say of each error where it is in the files of the author."""
    places = {str(staged.sql): source.sql, str(staged.yaml): source.yaml or source.sql}
    found = list(errors)
    for error in found:
        if error.at is not None and (file := places.get(error.at.file)) is not None:
            error.at = replace(error.at, file=str(file))
    return found


def _copied(staged: ProcessorFiles, folder: Path) -> list[Path]:
    """Copy files that are not there yet: all, or none."""
    made: list[Path] = []
    with ExitStack() as undo:
        for file in staged.all:
            target = folder / file.name
            with target.open("x", encoding="utf-8") as written:
                undo.callback(target.unlink)
                written.write(file.read_text(encoding="utf-8"))
            made.append(target)
        undo.pop_all()
    return made
