"""`kaflow serve`: named SQL over HTTP."""

import time
from contextlib import chdir
from datetime import UTC, datetime
from pathlib import Path

import click

from kaflow_engine.cli.live_view.logs import log_messages
from kaflow_engine.cli.options import (
    allow_option,
    allowances,
    config_option,
    configuration,
    set_option,
)
from kaflow_engine.cli.stopping import stop_requests


@click.command("serve")
@click.argument("file", type=click.Path(path_type=Path))
@config_option
@set_option
@allow_option
def command(
    file: Path,
    config_path: Path | None,
    settings: tuple[str, ...],
    allowed: tuple[str, ...],
) -> None:
    """Answer requests for the data sets of FILE, each a SELECT with parameters, until Ctrl-C.

    Databases are read, and never written. Requests show a token of FILE, from whose folder paths in
    its SQL count.
    """
    from kaflow_engine.serving.checks import check_serve_file
    from kaflow_engine.serving.serve import Clocks, serving

    config = configuration(config_path, (*settings, *allowances(allowed)))
    serve = check_serve_file(file, config)
    clocks = Clocks(now=lambda: datetime.now(UTC), monotonic=time.monotonic)
    here, logged = chdir(serve.file.file.parent), log_messages(config.logging)
    with here, logged, stop_requests() as asked, serving(serve, clocks) as place:
        for dataset in serve.datasets.values():
            grains = f" (grains: {', '.join(dataset.grains)})" if dataset.grains else ""
            click.echo(f"http://{place}/v1/datasets/{dataset.name}{grains}")
        click.echo(f"serving {len(serve.datasets)} data sets; Ctrl-C ends it")
        asked.wait()
