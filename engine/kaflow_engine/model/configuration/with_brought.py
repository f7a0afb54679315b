"""Lays what pipeline files bring over the configuration."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.brought.settings import Setting
from kaflow_engine.model.config import Config
from kaflow_engine.model.files.yaml_file import raise_all
from kaflow_engine.model.spec import Spec
from kaflow_engine.model.specs import PipelineSpec

_STRONGER = ("command line", "environment")
"""Whose settings stand over those of files."""


def with_brought(config: Config, pipelines: Sequence[PipelineSpec]) -> Config:
    """Return the configuration with which some pipelines run together.

    What a pipeline file says stands over the configuration file, and below what the environment
    and the command line say.

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
                mistakes.append(_two_values(setting, other))
    raise_all(mistakes)
    origins: Mapping[Any, str] = config.origins
    for path, setting in first.items():
        if config.origin(*path).startswith(_STRONGER):
            continue
        config = cast(Config, _with(config, path, setting.value))
        origins = {**origins, path: str(replace(setting.at, column=0))}
    return config.model_copy(update={"origins": origins}) if first else config


def not_allowed(config: Config, spec: PipelineSpec) -> list[ModelError]:
    """Return what is wrong with what a file wants to open."""
    allowed = config.sql.attach
    return [
        _closed(opening.kind, opening.at, config.file)
        for opening in spec.brought.openings
        if opening.kind not in allowed
    ]


def _closed(kind: str, at: Location, file: str | None) -> ModelError:
    return ModelError(
        f"ATTACH of {kind} is not allowed by the configuration",
        at,
        f"allow it by this line in {file or 'kaflow.yaml'}: sql: {{attach: [{kind}]}}, or for this "
        f"command by --allow attach={kind}",
    )


def _two_values(setting: Setting, other: Setting) -> ModelError:
    key = ".".join(setting.path)
    return ModelError(
        f"'{key}' is another one here than at {other.at}, and these pipelines run together",
        setting.at,
        "run them in commands of their own, or say the same in both",
    )


def _with(holder: object, path: Sequence[str], value: object) -> object:
    """Return a configuration, or a mapping in it, with another value."""
    name, below = path[0], path[1:]
    if isinstance(holder, Spec):
        new = _with(getattr(holder, name), below, value) if below else value
        return holder.model_copy(update={name: new})
    known = cast(Mapping[str, object], holder)
    return {**known, name: _with(known.get(name, {}), below, value) if below else value}
