"""The Jinja of a model: `config`, `source`, `ref`, `var` and `env_var`, in a sandbox.

What a tag spans stays as empty lines, so that a line of the SQL is a line of the file.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from jinja2 import TemplateError, TemplateSyntaxError

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.dbt.bounds import Bounded
from kaflow_engine.model.files.tree import brief

_TRIM = re.compile(r"(\{[{%#])[-+]|[-+]([}%#]\})")
_FILE = "<template>"
"""What Jinja calls a template without a file."""

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

    environment = Bounded()
    known = {"config": config, "source": names.source, "ref": names.ref, "var": var}
    try:
        kept = _keep_lines(text, environment)
        found.sql = environment.rendered(kept, {**known, "env_var": env_var})
    except TemplateSyntaxError as error:
        raise ModelError(_sentence(error), Location(file, error.lineno)) from error
    except ModelError as error:
        at = error.at or Location(file, _line(error.__traceback__))
        raise ModelError(error.message, at, error.hint) from error
    except RecursionError as error:
        at = Location(file, _line(error.__traceback__))
        raise ModelError("the template fails: it calls itself", at) from error
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise ModelError(_sentence(error), Location(file, _line(error.__traceback__))) from error
    return found


def _keep_lines(text: str, environment: Bounded) -> str:
    """Put the line ends of every tag behind it; trimming would take them away again."""
    plain = _TRIM.sub(lambda mark: mark[1] or mark[2], text)
    found: list[str] = []
    lines = 0
    for _, kind, piece in environment.lex(plain):
        if kind == "data":
            found.append(piece)
            continue
        lines += piece.count("\n")
        found.append(piece.replace("\n", " "))
        if kind.endswith("_end"):
            found.append("\n" * lines)
            lines = 0
    return "".join(found)


def _known(
    kind: str, name: str, known: Mapping[str, object], default: object, where: str
) -> object:
    if name in known:
        return known[name]
    if default is not _NOTHING:
        return default
    place = f"set it {where}".rstrip()
    raise ModelError(f"the {kind} '{brief(name)}' is not set", None, f"{place}, or give a default")


def _sentence(error: Exception) -> str:
    return f"the template fails: {brief(str(error)) or type(error).__name__}"


def _line(trace: TracebackType | None) -> int | None:
    """Return the line of the template; Jinja puts it into the traceback."""
    found: int | None = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == _FILE:
            found = trace.tb_lineno
        trace = trace.tb_next
    return found
