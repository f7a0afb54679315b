"""`kaflow config show`: every value of the configuration with its origin, secrets masked."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias, cast

from kaflow_engine.masking import masked
from kaflow_engine.model.config import Config
from kaflow_engine.model.durations import format_duration, is_duration
from kaflow_engine.model.files.shapes import file_keys
from kaflow_engine.model.spec import Spec

Shown: TypeAlias = str | int | float | bool | list[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value of the configuration."""

    key: str
    """Its dotted name, as files spell it."""
    value: Shown
    """Masked where it is secret; durations as text."""
    origin: str
    """`default`, `file:line`, `environment KAFLOW__…` or `command line`."""

    @property
    def text(self) -> str:
        """The value on one line."""
        match self.value:
            case None:
                return "-"
            case "":
                return '""'
            case bool():
                return "true" if self.value else "false"
            case list():
                return ", ".join(self.value)
            case _:
                return str(self.value)


def settings_of(config: Config) -> list[Setting]:
    """List every value, in the order of the specification."""
    return list(_settings(config, (), config))


def _settings(part: Spec, path: tuple[str, ...], config: Config) -> Iterator[Setting]:
    for key, name in dict.fromkeys(file_keys(type(part)).values()):
        value: object = getattr(part, name)
        here = (*path, key)
        if isinstance(value, Spec):
            yield from _settings(value, here, config)
        elif isinstance(value, dict):
            for entry, item in sorted(cast(dict[str, str | Spec], value).items()):
                if isinstance(item, Spec):
                    yield from _settings(item, (*here, entry), config)
                    continue
                yield _setting((*here, entry), item, config)
        else:
            field = type(part).model_fields[name]
            if isinstance(value, int) and is_duration(field.annotation, field.metadata):
                value = format_duration(value)
            yield _setting(here, value, config)


def _setting(path: tuple[str, ...], value: object, config: Config) -> Setting:
    key = ".".join(path)
    origin = config.origin(*path)
    if isinstance(value, tuple):
        texts = [masked(key, str(item)) for item in cast(tuple[object, ...], value)]
        return Setting(key=key, value=texts, origin=origin)
    if isinstance(value, str):
        return Setting(key=key, value=masked(key, value), origin=origin)
    return Setting(key=key, value=cast(Shown, value), origin=origin)
