"""Options that several commands share."""

from math import inf
from pathlib import Path

import click

from kaflow_engine.errors import ModelError
from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.load_config import (
    config_among,
    find_config,
    load_config,
    second_config,
)
from kaflow_engine.model.durations import parse_duration
from kaflow_engine.model.files.variables import read_environment

config_option = click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Configuration file; default: kaflow.yaml or config.yaml in this folder.",
)

set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set one value of the configuration, such as state.ttl=2h; may be repeated.",
)

allow_option = click.option(
    "--allow",
    "allowed",
    multiple=True,
    metavar="attach=KINDS|read=PATHS|write=PATHS",
    help="Let SQL of pipeline files open databases of these kinds, such as attach=postgres, or "
    "read these files and folders, or write these folders; short for --set sql.attach=KINDS, --set "
    "sql.read=PATHS and --set sql.write=PATHS.",
)

master_option = click.option(
    "--master",
    metavar="URL",
    help="Spark master, such as local[4] or spark://host:7077; short for --set spark.master=URL.",
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

paths_argument = click.argument(
    "paths", nargs=-1, required=True, metavar="PATH…", type=click.Path(path_type=Path)
)


def allowances(allowed: tuple[str, ...]) -> tuple[str, ...]:
    """Return what `--allow` says, all of it together, as settings of the configuration.

    Raises:
        click.BadParameter: There is no such thing to allow.
    """
    found: dict[str, list[str]] = {}
    for each in allowed:
        key, _, value = each.partition("=")
        if key not in ("attach", "read", "write") or not value:
            hint = "write attach=postgres, attach=postgres,sqlite, read=data or write=out"
            raise click.BadParameter(f"'{each}' cannot be allowed; {hint}", param_hint="--allow")
        found.setdefault(key, []).append(value)
    return tuple(f"sql.{key}={','.join(values)}" for key, values in found.items())


files_argument = click.argument(
    "paths", nargs=-1, metavar="[PATH]…", type=click.Path(path_type=Path)
)
"""Paths that need not be named."""

LOCATION = "STREAMLING__PIPELINE_DEFINITION_LOCATION"


def files_named(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the paths of a command line; where there are none, the file that a variable names, or
    `pipeline.yaml` of this folder.

    Raises:
        click.UsageError: There is none of these.
    """
    if paths:
        return paths
    named = read_environment().get(LOCATION)
    if named:
        return (Path(named),)
    if PIPELINE.is_file():
        return (PIPELINE,)
    raise click.UsageError(f"Missing argument 'PATH…'; or set {LOCATION}, or write {PIPELINE}.")


PIPELINE = Path("pipeline.yaml")


class DurationType(click.ParamType[int]):
    """A duration, such as `1h30m`; milliseconds to the command."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        try:
            return parse_duration(str(value))
        except ModelError as error:
            self.fail(f"{error.message}; {error.hint}", param, ctx)


class PositiveType(click.ParamType[float]):
    """A number greater than 0."""

    name = "number"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            found = float(str(value))
        except ValueError:
            found = 0.0
        if not 0 < found < inf:
            self.fail(f"'{value}' is not a number greater than 0", param, ctx)
        return found


def with_config(
    paths: tuple[Path, ...], config_path: Path | None, default: tuple[Path, ...] = ()
) -> tuple[tuple[Path, ...], Path | None]:
    """Take the configuration out of the paths of a command line, where it stands among them.

    Args:
        paths: Files and folders.
        config_path: What `--config` names.
        default: The paths where there are no others.

    Returns:
        The other paths, and the configuration; the path of the configuration where it is the only
        one, for whoever reads it to say what is missing.

    Raises:
        ModelError: There are two configurations.
    """
    found, others = config_among(paths)
    if found is None:
        return others or default, config_path
    if config_path is not None and config_path.resolve() != found.resolve():
        raise second_config(found, config_path)
    return others or default or (found,), found


def configuration(
    config_path: Path | None, settings: tuple[str, ...] = (), master: str | None = None
) -> Config:
    """Load the configuration that `--config`, `--set` and `--master` stand for.

    Raises:
        click.BadParameter: A setting has no `=`.
        ModelError: The configuration holds mistakes.
    """
    overrides: dict[str, object] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise click.BadParameter(
                f"'{setting}' has no value; write it as KEY=VALUE", param_hint="--set"
            )
        overrides[key] = value
    if master is not None:
        overrides["spark.master"] = master
    return load_config(config_path or find_config(Path()), overrides=overrides)
