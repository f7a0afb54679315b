"""`kaflow state rescale | snapshot | drop`: what is done to a state while no one runs it."""

import time
from pathlib import Path

import click

from kaflow_engine.cli.options import configuration, json_option
from kaflow_engine.cli.output import Steps, print_json
from kaflow_engine.cli.state.state_list import configured
from kaflow_engine.errors import KaflowError
from kaflow_engine.runtime.maintenance.catalog import find_state, refuse_running, state_root
from kaflow_engine.runtime.maintenance.drop import Remembered, drop, remembered
from kaflow_engine.runtime.maintenance.exclusive import held, take_epoch
from kaflow_engine.runtime.maintenance.rescale import already, check_rescale, rescale
from kaflow_engine.runtime.maintenance.snapshot import snapshot_now


@click.command("rescale")
@click.argument("pipeline")
@click.option(
    "--partitions", type=click.IntRange(1, 256), required=True, help="How many there shall be."
)
@configured
@json_option
def rescale_state(
    pipeline: str,
    partitions: int,
    config_path: Path | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Give a state another number of partitions; the pipeline must be stopped.

    All entries are kept, and the next run goes on where the last one ended. Interrupted, it has
    done nothing or all, and can be called again.
    """
    config = configuration(config_path, settings)
    found = find_state(state_root(config), pipeline)
    steps = Steps()
    with held(found, "rescaled") as at:
        done = already(at.state, at.log, partitions)
        if done is None:
            check_rescale(at.log, at.state)
            epoch = take_epoch(config, found, at)
            done = rescale(at.directory, at.log, at.snapshots, partitions, epoch, _now(), steps.say)
    if as_json:
        print_json(
            {
                "pipeline": found.name,
                "before": done.before,
                "partitions": done.state.partitions,
                "generation": done.state.generation,
                "batch": done.batch,
                "entries": done.entries,
            }
        )
        return
    if done.before == done.state.partitions:
        click.echo(f"{found.name}: it has {done.before} partitions already")
        return
    click.echo(
        f"{found.name}: {done.before} → {done.state.partitions} partitions, "
        f"{done.entries} entries, generation {done.state.generation} behind batch {done.batch}"
    )
    click.echo("the next `kaflow run` goes on from there", err=True)


@click.command("snapshot")
@click.argument("pipeline")
@configured
@json_option
def snapshot_state(
    pipeline: str, config_path: Path | None, settings: tuple[str, ...], as_json: bool
) -> None:
    """Take a snapshot of a state now; a pipeline that runs takes them by itself."""
    config = configuration(config_path, settings)
    found = find_state(state_root(config), pipeline)
    with held(found, "copied by this command") as at:
        batch = snapshot_now(at, _now(), Steps().say)
    if as_json:
        print_json({"pipeline": found.name, "batch": batch})
    else:
        click.echo(f"{found.name}: snapshot behind batch {batch}")


@click.command("drop")
@click.argument("pipeline")
@click.option("--yes", is_flag=True, help="Do not ask.")
@configured
@json_option
def drop_state(
    pipeline: str, yes: bool, config_path: Path | None, settings: tuple[str, ...], as_json: bool
) -> None:
    """Drop a state, and what is noted of its deliveries.

    The next run starts from the beginning: rows that were written before are written again, and
    waiting rows are lost.
    """
    config = configuration(config_path, settings)
    root = state_root(config)
    try:
        found = find_state(root, pipeline)
    except KaflowError:
        wanted = remembered(config, pipeline, root / pipeline)
        if not wanted.states:
            raise
    else:
        refuse_running(found, "dropped")
        wanted = remembered(config, found.id, found.directory)
    if not yes:
        click.echo(_what_is_dropped(wanted), err=True)
        click.confirm("drop it?", abort=True, err=True)
    gone = drop(config, wanted)
    if as_json:
        print_json({"pipeline": wanted.id, "directory": str(wanted.directory), "markers": gone})
    else:
        click.echo(f"dropped {wanted.id}, and {gone} notes of its deliveries")


COMMANDS = (rescale_state, snapshot_state, drop_state)


def _what_is_dropped(wanted: Remembered) -> str:
    here = str(wanted.directory) if wanted.directory.exists() else "no directory on this machine"
    states = ", ".join(f"{state} generation {of}" for state, of in sorted(wanted.states))
    return (
        f"state of pipeline '{wanted.id}': {here}\n"
        f"deliveries are known from: {states or 'none'}\n"
        "the next run starts from the beginning, and writes rows again that it has written before"
    )


def _now() -> int:
    return time.time_ns() // 1_000_000
