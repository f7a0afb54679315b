"""`kaflow processor scale | delete`: changes of the files of a processor, and of its state."""

from pathlib import Path
from shlex import quote

import click

from kaflow_engine.cli.options import config_option, configuration, set_option
from kaflow_engine.cli.processor.files import (
    OwnProcessor,
    find_processor,
    project_folder,
    with_key,
)
from kaflow_engine.cli.processor.options import dagster_option, find_stream
from kaflow_engine.cli.state.state_change import rescale_state
from kaflow_engine.connectors.dagster.client import Dagster
from kaflow_engine.connectors.dagster.streams import Stream
from kaflow_engine.errors import ModelError, StateError, UnknownName
from kaflow_engine.model.config import Config
from kaflow_engine.model.files.yaml_file import read_text
from kaflow_engine.model.lenses.front_end import YAML
from kaflow_engine.plan.planner.inputs.kafka_topics import dead_letter_topic
from kaflow_engine.runtime.maintenance.catalog import (
    FoundState,
    found_state,
    refuse_running,
    state_root,
)

folder_option = click.option(
    "--folder",
    "given",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the project; default: `pipelines` beside the configuration.",
)


@click.command("scale")
@click.argument("name")
@click.option("--runners", type=click.IntRange(1, 256), required=True, help="How many tasks.")
@folder_option
@dagster_option
@config_option
@set_option
@click.pass_context
def scale(
    context: click.Context,
    name: str,
    runners: int,
    given: Path | None,
    url: str,
    config_path: Path | None,
    settings: tuple[str, ...],
) -> None:
    """Set how many tasks share the work of a processor.

    A state with another number of partitions is rescaled: a new generation of it is made, which
    needs a processor that is stopped.
    """
    config = configuration(config_path, settings)
    own = find_processor(project_folder(config, given, "--folder"), name, config)
    dagster = Dagster(url)
    stream = _stream(dagster, name)
    state = _state(own, config)
    file = own.files.yaml or own.files.stem.with_name(own.files.stem.name + YAML[0])
    text = with_key(read_text(file) if file.exists() else "", "runners", runners, file)
    before = state.stored.state.partitions if state and state.stored.state else runners
    if state is None and _is_on(dagster, stream):
        raise StateError(
            f"processor '{name}' is on, and its state is not in {state_root(config)}",
            hint="run this command where its state is, or stop a processor that has none yet",
        )
    if state is not None and before != runners:
        if _is_on(dagster, stream):
            raise StateError(
                f"the state of processor '{name}' has {before} partitions, and another number is "
                "a new generation of it, which is made while the processor is stopped",
                hint=f"kaflow processor stop {quote(name)}, then this command again, then "
                f"kaflow processor start {quote(name)}",
            )
        refuse_running(state, "rescaled")
        context.invoke(
            rescale_state,
            pipeline=state.id,
            partitions=runners,
            config_path=config_path,
            settings=settings,
            as_json=False,
        )
    file.write_text(text, encoding="utf-8")
    click.echo(f"{name}: runners: {runners} in {file}")
    dagster.reload(stream.location if stream else None)
    click.echo("Dagster has loaded it")


@click.command("delete")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@folder_option
@dagster_option
@config_option
@set_option
def delete(
    name: str,
    yes: bool,
    given: Path | None,
    url: str,
    config_path: Path | None,
    settings: tuple[str, ...],
) -> None:
    """Remove the files of a processor that is stopped; its state and its topics stay."""
    config = configuration(config_path, settings)
    own = find_processor(project_folder(config, given, "--folder"), name, config)
    dagster = Dagster(url)
    stream = _stream(dagster, name)
    if _is_on(dagster, stream):
        hint = f"kaflow processor stop {quote(name)}, and wait until its run has ended"
        raise ModelError(f"processor '{name}' runs", hint=hint)
    state = _state(own, config)
    if state is not None:
        refuse_running(state, "left alone")
    files = ", ".join(map(str, own.files.all))
    if not yes:
        click.confirm(f"remove {files}?", abort=True, err=True)
    for file in own.files.all:
        file.unlink()
    click.echo(f"removed {files}")
    for line in _what_stays(own, state, config):
        click.echo(line)
    dagster.reload(stream.location if stream else None)


def _stream(dagster: Dagster, name: str) -> Stream | None:
    """Return the stream of a processor; None: Dagster has not loaded it."""
    try:
        return find_stream(dagster, name)
    except UnknownName:
        return None


def _is_on(dagster: Dagster, stream: Stream | None) -> bool:
    if stream is None:
        return False
    return dagster.switch(stream).on or any(run.live for run in dagster.runs(stream))


def _state(own: OwnProcessor, config: Config) -> FoundState | None:
    """Return the state of a processor; None: it has none on this machine."""
    directory = state_root(config) / (own.spec.id if own.spec else own.name)
    return found_state(directory) if directory.is_dir() else None


def _what_stays(own: OwnProcessor, state: FoundState | None, config: Config) -> list[str]:
    settings = f" --config {quote(config.file)}" if config.file else ""
    lines: list[str] = []
    if state is not None:
        drop = f"kaflow state drop {quote(state.id)}{settings}"
        lines.append(f"its state stays in {state.directory}; to remove it: {drop}")
    if own.spec is not None:
        written = [write.output.topic for write in own.spec.writes if write.output.topic]
        topics = [*written, *filter(None, [dead_letter_topic(own.spec)])]
        brokers = quote(",".join(config.kafka.brokers))
        lines.append(f"its topics stay: {', '.join(topics)}; to remove one:")
        lines.append(
            f"  kafka-topics.sh --bootstrap-server {brokers} --delete --topic {quote(topics[0])}"
        )
    return lines
