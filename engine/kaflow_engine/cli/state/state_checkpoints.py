"""`kaflow state checkpoints` and `kaflow state restore`: what is in the bucket, and its return."""

from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from kaflow_engine.cli.options import config_option, configuration, json_option, set_option
from kaflow_engine.cli.output import Clock, Steps, print_json, print_table
from kaflow_engine.errors import ModelError, StateError
from kaflow_engine.model.config import Config
from kaflow_engine.runtime.takeover.restore import checkpoints_of, restore
from kaflow_engine.state.checkpoints.checkpoints import Checkpoints, Head, Listed, Tell
from kaflow_engine.state.log.batch_log import BatchLog
from kaflow_engine.state.storage.lease import hold_lease
from kaflow_engine.state.storage.store import Damaged, LocalStore


@click.command("checkpoints")
@click.argument("pipeline")
@config_option
@set_option
@click.option("--verify", is_flag=True, help="Read all files, and compare their checksums.")
@json_option
def list_checkpoints(
    pipeline: str,
    config_path: Path | None,
    settings: tuple[str, ...],
    verify: bool,
    as_json: bool,
) -> None:
    """List the checkpoints of a pipeline, newest first."""
    checkpoints = _checkpoints(configuration(config_path, settings), pipeline)
    head, clock = _head(checkpoints), Clock()
    rows = [{**_about(head, each), "problem": None} for each in head.checkpoints]
    for row, each in zip(rows, head.checkpoints, strict=True) if verify else ():
        clock.say(f"reading the checkpoint of batch {each.batch}")
        try:
            with TemporaryDirectory() as scratch:
                checkpoints.check(each, _progress(clock), Path(scratch))
        except Damaged as error:
            row["problem"] = error.message
    if as_json:
        print_json(rows)
    elif not rows:
        click.echo("no checkpoint yet: the pipeline's topic keeps all its batches")
    else:
        print_table([[*rows[0]], *([_cell(row[name]) for name in rows[0]] for row in rows)])
    if any(row["problem"] for row in rows):
        raise StateError(
            "a checkpoint is damaged",
            hint="the others can be restored; the next one that is written replaces the oldest",
        )


@click.command("restore")
@click.argument("pipeline")
@config_option
@set_option
@click.option("--at", "batch", type=int, help="The checkpoint of this batch; default: the newest.")
@click.option("--replace", is_flag=True, help="Replace the state that is there.")
def restore_state(
    pipeline: str,
    config_path: Path | None,
    settings: tuple[str, ...],
    batch: int | None,
    replace: bool,
) -> None:
    """Bring the state of a pipeline back from a checkpoint.

    `kaflow run` does so by itself where there is no state. The next run runs the batches after the
    checkpoint again, as they were cut, and writes what was not written.
    """
    config = configuration(config_path, settings)
    checkpoints = _checkpoints(config, pipeline)
    directory = Path(config.state.rocksdb.path).absolute() / pipeline
    store, clock = LocalStore(directory), Clock()
    with hold_lease(directory):
        log = BatchLog(store)
        if log.load_state() is not None and not replace:
            raise StateError(
                f"'{directory}' holds a state, as it is after batch {log.next_number() - 1}",
                hint="--replace puts the checkpoint in its place",
            )
        head = _head(checkpoints)
        choice = _choice(head, batch)
        done = restore(store, checkpoints, head, choice, _progress(clock))
    clock.say(f"the state of '{pipeline}' is as it was after batch {done}")


COMMANDS = (list_checkpoints, restore_state)


def _checkpoints(config: Config, pipeline: str) -> Checkpoints:
    s3 = config.state.rocksdb.checkpoint.s3
    if not s3.enabled:
        raise ModelError(
            "no checkpoints are written: state.rocksdb.checkpoint.s3.enabled is false",
            hint="name the configuration that the pipeline runs with, by --config",
        )
    return checkpoints_of(s3, pipeline)


def _head(checkpoints: Checkpoints) -> Head:
    found = checkpoints.head()
    if found is None:
        raise StateError(
            f"pipeline '{checkpoints.pipeline}' has no checkpoints in {checkpoints.bucket}",
            hint="the name is its `id:` where it has one",
        )
    return found[0]


def _choice(head: Head, batch: int | None) -> tuple[Listed, ...]:
    if batch is None:
        return head.checkpoints
    chosen = tuple(each for each in head.checkpoints if each.batch == batch)
    if not chosen:
        known = ", ".join(str(each.batch) for each in head.checkpoints) or "none"
        raise StateError(f"there is no checkpoint of batch {batch}", hint=f"there are: {known}")
    return chosen


def _about(head: Head, each: Listed) -> dict[str, object]:
    return {
        "batch": each.batch,
        "created": datetime.fromtimestamp(each.created_ms / 1000, UTC).isoformat(" ", "seconds"),
        "mib": round(each.bytes / 2**20, 1),
        "state": head.state_id,
        "generation": head.generation,
    }


def _cell(value: object) -> str:
    return "" if value is None else str(value)


def _progress(clock: Clock) -> Tell:
    steps = Steps(clock)
    return lambda done, whole: steps.say(f"{done >> 20} of {whole >> 20} MiB")
