"""The Jinja of a model: `config`, `source`, `ref`, `var` and `env_var`, in a sandbox."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kaflow_engine.errors import ModelError
from kaflow_engine.model.files.templates import rendered
from kaflow_engine.model.files.tree import brief

_NOTHING: Any = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What a template may ask for; each raises ModelError where there is no such thing."""

    source: Callable[[str, str], str]
    """The SQL for a table of a source."""
    ref: Callable[[str], str]
    """The SQL for a model."""
    variables: Mapping[str, object]
    """What `var` finds."""
    environment: Mapping[str, str]
    """What `env_var` finds."""


@dataclass(slots=True, kw_only=True)
class Rendered:
    """A model's SQL, and what its template said on the way."""

    sql: str = ""
    config: dict[str, object] = field(default_factory=dict[str, object])


def render(text: str, file: str, names: Names) -> Rendered:
    """Render a model.

    Raises:
        ModelError: With the line at which the template went wrong.
    """
    found = Rendered()

    def config(**settings: object) -> str:
        found.config.update(settings)
        return ""

    def var(name: str, default: object = _NOTHING) -> object:
        return _known("variable", name, names.variables, default, "under vars: in kaflow.yaml")

    def env_var(name: str, default: object = _NOTHING) -> object:
        return _known("environment variable", name, names.environment, default, "")

    known = {"config": config, "source": names.source, "ref": names.ref, "var": var}
    found.sql = rendered(text, file, {**known, "env_var": env_var})
    return found


def _known(
    kind: str, name: str, known: Mapping[str, object], default: object, where: str
) -> object:
    if name in known:
        return known[name]
    if default is not _NOTHING:
        return default
    place = f"set it {where}".rstrip()
    raise ModelError(f"the {kind} '{brief(name)}' is not set", None, f"{place}, or give a default")
