"""`kaflow explain`: what a pipeline will do."""

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path

import click

from kaflow_engine.cli.options import (
    config_option,
    configuration,
    json_option,
    set_option,
    with_config,
)
from kaflow_engine.cli.output import print_json, say_notices
from kaflow_engine.errors import Location
from kaflow_engine.masking import without_secrets
from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.preprocessors import rewriter
from kaflow_engine.model.configuration.with_brought import with_brought
from kaflow_engine.model.files.yaml_file import read_text
from kaflow_engine.model.front_ends import DEFAULT
from kaflow_engine.model.project import read_project
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.explain.draw import draw
from kaflow_engine.plan.explain.explain import Resolver, explain, unknown_topics
from kaflow_engine.plan.graph import graph
from kaflow_engine.plan.planner.project import load_checked

RESOLVER = "kaflow_engine.runtime.planning.columns:resolve_columns"
"""Finds columns in the schema registry or in a sample; imported when it is asked for."""

PATIENCE = 5_000
"""Milliseconds that a topic's first record is waited for."""

connect_option = click.option(
    "--connect",
    is_flag=True,
    help="Ask the schema registry and the broker for columns that no file declares.",
)


@click.command("explain")
@click.argument("path", type=click.Path(path_type=Path))
@click.argument("names", nargs=-1, metavar="[NAME]…")
@connect_option
@click.option(
    "--source",
    is_flag=True,
    help="Print the text of the files as preprocessors have rewritten it, with its lines.",
)
@click.option(
    "--graph",
    "as_graph",
    is_flag=True,
    help="Print what reads what as a Mermaid diagram.",
)
@config_option
@set_option
@json_option
def command(
    path: Path,
    names: Sequence[str],
    connect: bool,
    source: bool,
    as_graph: bool,
    config_path: Path | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show what pipelines will do: all of PATH, or those called NAME."""
    (path, *others), config_path = with_config((path, *map(Path, names)), config_path)
    names = [str(other) for other in others]
    config = configuration(config_path, settings)
    if source:
        _print_sources(path, names, config)
        return
    project = load_checked([path], config)
    say_notices(project.notices)
    specs = [project.pipeline(name) for name in names] or list(project.pipelines)
    if as_graph:
        click.echo("\n\n".join("\n".join(graph(spec)) for spec in specs))
        return
    print_plans(specs, config, connect=connect, as_json=as_json)


def print_plans(
    specs: Sequence[PipelineSpec], config: Config, *, connect: bool, as_json: bool
) -> None:
    """Print what pipelines will do.

    Args:
        specs: Of sound files.
        config: Where brokers and registry are.
        connect: Ask them for columns that no file declares.
        as_json: Print it as data.
    """
    resolve = resolver() if connect else None
    found = [
        explain(spec, own, resolve(spec, own, unknown_topics(spec)) if resolve else None)
        for spec in specs
        for own in (with_brought(config, [spec]),)
    ]
    if as_json:
        print_json([explanation.data() for explanation in found])
    else:
        click.echo(without_secrets("\n\n".join("\n".join(draw(each)) for each in found)))


def _print_sources(path: Path, names: Sequence[str], config: Config) -> None:
    """Print the text of pipelines, right or wrong, as it is parsed."""
    rewrite = rewriter(config)
    for reading in read_project([path], config).readings:
        if names and reading.name not in names:
            continue
        text, at = read_text(Path(reading.at.file)), Location(reading.at.file)
        if rewrite is not None and reading.front_end == DEFAULT.name:
            text, at = rewrite(text, at)
        click.echo(f"{at}:")
        for number, line in enumerate(without_secrets(text).splitlines(), start=1):
            click.echo(f"{number:>4}  {line}".rstrip())


def resolver() -> Resolver:
    """Return what finds columns, importing it on first use."""
    module, _, attribute = RESOLVER.partition(":")
    return partial(getattr(import_module(module), attribute), wait_ms=PATIENCE)
