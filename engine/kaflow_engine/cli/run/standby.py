"""Standby in the foreground: waits for the lease of pipelines that another process runs."""

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event

import click

from kaflow_engine.errors import StateHeld
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.runtime.standby import stand_by
from kaflow_engine.state.storage.lease import Leases
from kaflow_engine.telemetry.progress import Progress


def take_states(
    specs: Sequence[PipelineSpec],
    config: Config,
    asked: Event,
    on_progress: Callable[[Progress], None],
    *,
    waits: bool,
) -> Leases | None:
    """Take the states of pipelines.

    Args:
        specs: The pipelines.
        config: Says where states are.
        asked: Set when someone wants this process to end.
        on_progress: Called when they begin to be on standby, and when that ends.
        waits: For another process that holds one to end.

    Returns:
        The leases; None where someone wanted it to end.

    Raises:
        StateHeld: Another process holds one, and nothing is waited for.
    """
    root = Path(config.state.rocksdb.path).absolute()
    ids = [spec.id for spec in specs]
    if not waits:
        return Leases(root, ids).take()
    waited: list[StateHeld] = []

    def wait(held: StateHeld) -> None:
        waited.append(held)
        for spec in specs:
            on_progress(Progress(pipeline=spec.name, state="standby", waits_for=held.message))
        _say(f"standing by: {held.message}; this process takes over when that one ends")

    leases = stand_by(root, ids, asked, wait)
    if waited and leases is not None:
        for spec in specs:
            on_progress(Progress(pipeline=spec.name))
        _say("taking over")
    return leases


def _say(text: str) -> None:
    click.echo(text, err=True)
