"""`${VAR}` and `${VAR:-default}` in the author's files, and the one door to the environment."""

import os
import re
from collections.abc import Callable, Mapping

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.tree import brief

_REFERENCE = re.compile(r"\$\$|\$\{(?P<inside>[^}\n]*)(?P<end>\}?)")
_INSIDE = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?")


def read_environment() -> dict[str, str]:
    """Return the environment of this process; nothing else in the engine reads it."""
    return dict(os.environ)


def expand(
    text: str, variables: Mapping[str, str], place: Callable[[int], Location]
) -> tuple[str, list[ModelError]]:
    """Replace `${VAR}` and `${VAR:-default}`; `$$` stands for `$`.

    As in a shell, the default also takes the place of an empty value.

    Args:
        text: What the author wrote.
        variables: Values by name.
        place: Where the character at an offset of the text stands.

    Returns:
        The expanded text and all mistakes; a mistake is replaced by nothing. Values of variables
        never appear in them.
    """
    mistakes: list[ModelError] = []

    def replace(found: re.Match[str]) -> str:
        value = _value(found, variables, place)
        if isinstance(value, ModelError):
            mistakes.append(value)
            return ""
        return value

    return _REFERENCE.sub(replace, text), mistakes


def _value(
    found: re.Match[str], variables: Mapping[str, str], place: Callable[[int], Location]
) -> str | ModelError:
    if found[0] == "$$":
        return "$"
    inside = _INSIDE.fullmatch(found["inside"]) if found["end"] else None
    if inside is None or "${" in (inside["default"] or ""):
        message = f"'{brief(found[0])}' is not a variable"
        hint = "write ${NAME} or ${NAME:-default}, and $$ for a literal $"
        return ModelError(message, place(found.start()), hint)
    name, default = inside["name"], inside["default"]
    value = variables.get(name)
    if default is not None:
        return value or default
    if value is None:
        hint = f"set it, or write ${{{name}:-default}}"
        return ModelError(f"the variable '{name}' is not set", place(found.start()), hint)
    return value
