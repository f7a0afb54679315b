"""Texts with Jinja in them, rendered in a sandbox.

What a tag spans stays as empty lines, so that a line of what comes out is a line of the file.
"""

import re
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from jinja2 import TemplateError, TemplateSyntaxError, UndefinedError

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.files.bounds import Bounded
from kaflow_engine.model.files.tree import brief

_TRIM = re.compile(r"(\{[{%#])[-+]|[-+]([}%#]\})")
_UNDEFINED = re.compile(r"'(\w+)' is undefined")
_FILE = "<template>"
"""What Jinja calls a template without a file."""


def rendered(
    text: str,
    file: str,
    names: Mapping[str, Any],
    unknown: Callable[[str], ModelError] | None = None,
) -> str:
    """Render a template.

    Args:
        text: The template.
        file: Where it stands.
        names: What it may ask for; what is called may raise ModelError.
        unknown: Returns the error for a name that is not among them; None: that of Jinja.

    Raises:
        ModelError: With the line at which the template went wrong.
    """
    environment = Bounded()
    try:
        return environment.rendered(_keep_lines(text, environment), dict(names))
    except TemplateSyntaxError as error:
        raise ModelError(_sentence(error), Location(file, error.lineno)) from error
    except ModelError as error:
        at = error.at or Location(file, _line(error.__traceback__))
        raise ModelError(error.message, at, error.hint) from error
    except RecursionError as error:
        at = Location(file, _line(error.__traceback__))
        raise ModelError("the template fails: it calls itself", at) from error
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        at = Location(file, _line(error.__traceback__))
        name = _UNDEFINED.fullmatch(str(error)) if isinstance(error, UndefinedError) else None
        if name is not None and unknown is not None:
            said = unknown(name[1])
            raise ModelError(said.message, at, said.hint) from error
        raise ModelError(_sentence(error), at) from error


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
