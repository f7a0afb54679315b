"""Lays what pipeline files bring over the configuration."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.masking import remember_settings
from kaflow_engine.model.brought.settings import Opening, Setting
from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.layers import COMMAND_LINE
from kaflow_engine.model.files.variables import DEFAULTS
from kaflow_engine.model.files.yaml_file import raise_all
from kaflow_engine.model.outputs.connection_specs import CommandConnection
from kaflow_engine.model.spec import Spec
from kaflow_engine.model.specs import PipelineSpec

_DOING = {"read": "reading", "write": "writing into"}


def with_brought(config: Config, pipelines: Sequence[PipelineSpec]) -> Config:
    """Return the configuration with which some pipelines run together.

    What a pipeline file says stands over the configuration file and `KAFLOW_DEFAULT__…`, and below
    what else the environment and the command line say. Its secrets are masked from now on.

    Args:
        config: The configuration of the project.
        pipelines: All that run in one process.

    Raises:
        ModelError: One wants to open what the configuration does not allow, or two of them bring
            different values.
        Problems: Several such mistakes.
    """
    mistakes = [mistake for spec in pipelines for mistake in not_allowed(config, spec)]
    first: dict[tuple[str, ...], Setting] = {}
    for spec in pipelines:
        for setting in spec.brought.settings:
            other = first.setdefault(setting.path, setting)
            if other.value != setting.value:
                mistakes.append(_two_values(_spelled(config, setting.path), setting, other))
    raise_all(mistakes)
    origins: Mapping[Any, str] = config.origins
    for path, setting in first.items():
        _remember(setting)
        key = _spelled(config, path)
        within = (origin for said, origin in config.origins.items() if said[: len(key)] == key)
        if any(map(_is_stronger, (config.origin(*key), *within))):
            continue
        config = cast(Config, _with(config, path, setting.value))
        origins = {**origins, key: str(replace(setting.at, column=0))}
    return config.model_copy(update={"origins": origins}) if first else config


def not_allowed(config: Config, spec: PipelineSpec) -> list[ModelError]:
    """Return what is wrong with what a file wants to open."""
    return closed(config, spec.brought.openings)


def closed(config: Config, openings: Iterable[Opening]) -> list[ModelError]:
    """Return an error for each thing outside that a configuration does not allow to be opened."""
    commands = config.connections["command"].get("default", CommandConnection())
    writable = commands.folders if isinstance(commands, CommandConnection) else ()
    allowed = {"read": config.sql.read, "write": writable}
    found: list[ModelError] = []
    for opening in openings:
        path, here = Path(opening.path).resolve(), Path().resolve()
        if not opening.path:
            if opening.kind in config.sql.attach:
                continue
            what = f"ATTACH of {opening.kind}"
            found.append(_closed(what, "attach", opening.kind, opening.at, config.file))
        elif not any(path.is_relative_to(Path(each).resolve()) for each in allowed[opening.kind]):
            shown = str(path.relative_to(here) if path.is_relative_to(here) else path)
            what = f"{_DOING[opening.kind]} '{shown}'"
            found.append(_closed(what, opening.kind, shown, opening.at, config.file))
    return found


def _closed(what: str, key: str, value: str, at: Location, file: str | None) -> ModelError:
    return ModelError(
        f"{what} is not allowed by the configuration",
        at,
        f"allow it by this line in {file or 'kaflow.yaml'}: sql: {{{key}: [{value}]}}, or for one "
        f"command by --set sql.{key}={value}",
    )


def _two_values(key: Sequence[str], setting: Setting, other: Setting) -> ModelError:
    return ModelError(
        f"'{'.'.join(key)}' is another one here than at {other.at}, and these pipelines run "
        "together",
        setting.at,
        "run them in commands of their own, or say the same in both",
    )


def _is_stronger(origin: str) -> bool:
    """Tell whether a value from there stands over those of pipeline files."""
    source, _, variable = origin.partition(" ")
    of_environment = source == "environment" and not variable.upper().startswith(DEFAULTS)
    return of_environment or origin == str(COMMAND_LINE)


def _remember(setting: Setting) -> None:
    value = setting.value
    plain = value.model_dump(by_alias=True) if isinstance(value, Spec) else value
    remember_settings({setting.path[-1]: plain}, setting.path[:-1])


def _spelled(holder: object, path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the path of a field as files spell its keys, which origins go by."""
    if not path or not isinstance(holder, Spec):
        return path
    key = type(holder).model_fields[path[0]].alias or path[0]
    return (key, *_spelled(getattr(holder, path[0]), path[1:]))


def _with(holder: object, path: Sequence[str], value: object) -> object:
    """Return a configuration, or a mapping in it, with another value."""
    name, below = path[0], path[1:]
    if isinstance(holder, Spec):
        new = _with(getattr(holder, name), below, value) if below else value
        return holder.model_copy(update={name: new})
    known = cast(Mapping[str, object], holder)
    return {**known, name: _with(known.get(name, {}), below, value) if below else value}
