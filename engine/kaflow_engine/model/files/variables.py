"""Variable expansion in files: `${VAR}`, `${VAR:-default}` and `${file:PATH}`."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.masking import remember, remember_environment
from kaflow_engine.model.files.tree import brief

SETTINGS = "KAFLOW__"
"""How variables begin that are settings of the process."""

DEFAULTS = "KAFLOW_DEFAULT__"
"""How settings begin that a configuration file overrides: an image brings them."""

AUTHORS = ("KAFLOW_*",)
"""What files of authors may expand unless `env` of the configuration says otherwise; a front end
for files of another kind adds the names that such files use."""

CONFIGURATION = "kaflow.yaml"
"""The configuration file that one would write where there is none."""

LARGEST = 65_536
"""Most bytes of a file that is a value."""

_REFERENCE = re.compile(r"\$\$|\$\{(?P<inside>[^}\n]*)(?P<end>\}?)")
_INSIDE = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?")
_FILE = re.compile(r"file:(?P<path>(?!-).+?)(?::-(?P<default>.*))?")


def read_environment() -> dict[str, str]:
    """Return the environment of this process; nothing else in the engine reads it."""
    found = dict(os.environ)
    remember_environment(found)
    return found


class Allowed(Mapping[str, str]):
    """The variables of an environment that files of authors may expand.

    Their names match one of the patterns, in which `*` stands for any text. Asking for another one
    raises ModelError, whether it is set or not, so that a file means the same everywhere. It names
    the configuration file, which could allow it.
    """

    def __init__(
        self,
        values: Mapping[str, str],
        patterns: Sequence[str] = AUTHORS,
        configuration: str | None = None,
    ) -> None:
        self._values, self._patterns = values, patterns
        self._configuration = Path(configuration or CONFIGURATION).name

    def __getitem__(self, name: str) -> str:
        if may_expand(name, self._patterns):
            return self._values[name]
        names = ", ".join(_in_a_list(each) for each in (*self._patterns, brief(name)))
        raise ModelError(
            f"the variable '{brief(name)}' is not one that pipelines may use",
            hint=f"allow it by this line in {self._configuration}: env: [{names}]",
        )

    def beside(self, patterns: Sequence[str]) -> "Allowed":
        """Return also those whose names match other patterns, unless the configuration says which
        there are."""
        if tuple(self._patterns) != AUTHORS or not patterns:
            return self
        return Allowed(self._values, (*self._patterns, *patterns), self._configuration)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._values if may_expand(name, self._patterns))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def variables_of_authors(
    patterns: Sequence[str] = AUTHORS, configuration: str | None = None
) -> Allowed:
    """Return what files of authors may expand of the environment of this process.

    Args:
        patterns: `env` of the configuration.
        configuration: The file that was read as such; None: there is none.
    """
    return Allowed(read_environment(), patterns, configuration)


def may_expand(name: str, patterns: Sequence[str]) -> bool:
    """Return whether files of authors may expand a variable.

    Settings of the process, among them its passwords, must be named as such.

    >>> may_expand("KAFLOW_REGION", ["KAFLOW_*"]), may_expand("KAFLOW__HTTP__TOKEN", ["KAFLOW_*"])
    (True, False)
    """
    for settings in (SETTINGS, DEFAULTS):
        if name.upper().startswith(settings):
            patterns = [pattern for pattern in patterns if pattern.upper().startswith(settings)]
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _in_a_list(pattern: str) -> str:
    return f'"{pattern}"' if pattern.startswith("*") else pattern  # YAML reads that as an alias


def read_secret(path: str) -> str:
    """Return the text of a file without the end of its last line; it will not be shown.

    Raises:
        OSError: There is no such file, or it cannot be read.
        ValueError: It is too large, or not a text.
    """
    with Path(path).open("rb") as file:
        found = file.read(LARGEST + 1)
    if len(found) > LARGEST:
        raise ValueError("too large")
    text = found.decode().removesuffix("\n").removesuffix("\r")
    remember([text])
    return text


def expand(
    text: str,
    variables: Mapping[str, str],
    place: Callable[[int], Location],
    read: Callable[[str], str] | None = None,
) -> tuple[str, list[ModelError]]:
    """Replace `${VAR}`, `${VAR:-default}` and `${file:PATH}`; `$$` stands for `$`.

    As in a shell, the default also takes the place of an empty value, or of a file that is not
    there.

    Args:
        text: What the author wrote.
        variables: Values by name.
        place: Where the character at an offset of the text stands.
        read: Reads a file; None: files are not for this text.

    Returns:
        The expanded text and all mistakes; a mistake is replaced by nothing. Values of variables
        never appear in them.
    """
    mistakes: list[ModelError] = []

    def replace(found: re.Match[str]) -> str:
        value = _value(found, variables, place, read)
        if isinstance(value, ModelError):
            mistakes.append(value)
            return ""
        return value

    return _REFERENCE.sub(replace, text), mistakes


def _value(
    found: re.Match[str],
    variables: Mapping[str, str],
    place: Callable[[int], Location],
    read: Callable[[str], str] | None,
) -> str | ModelError:
    if found[0] == "$$":
        return "$"
    inside = _INSIDE.fullmatch(found["inside"]) if found["end"] else None
    if found["end"] and not inside and (file := _FILE.fullmatch(found["inside"])):
        return _content(file["path"], file["default"], place(found.start()), read)
    if inside is None or "${" in (inside["default"] or ""):
        message = f"'{brief(found[0])}' is not a variable"
        hint = "write ${NAME} or ${NAME:-default}, and $$ for a literal $"
        return ModelError(message, place(found.start()), hint)
    name, default = inside["name"], inside["default"]
    try:
        value = variables.get(name)
    except ModelError as refused:
        return ModelError(refused.message, place(found.start()), refused.hint)
    if default is not None:
        return value or default
    if value is None:
        hint = f"set it, or write ${{{name}:-default}}"
        return ModelError(f"the variable '{name}' is not set", place(found.start()), hint)
    return value


def _content(
    path: str, default: str | None, at: Location, read: Callable[[str], str] | None
) -> str | ModelError:
    if read is None:
        hint = "name it there, or set a variable and write ${NAME}"
        return ModelError("only the configuration takes values from files", at, hint)
    return content(path, at, read, default)


def content(
    path: str, at: Location, read: Callable[[str], str], default: str | None = None
) -> str | ModelError:
    """Return what a file holds, or what is wrong with it.

    Args:
        path: Of the file.
        at: Where it is named.
        read: Reads it.
        default: Takes the place of a file that is not there.
    """
    try:
        return read(path)
    except FileNotFoundError:
        if default is not None:
            return default
        return ModelError(f"there is no file '{brief(path)}'", at, "mount it, or correct the path")
    except OSError as error:
        reason = (error.strerror or "it fails").lower()
        return ModelError(f"the file '{brief(path)}' cannot be read: {reason}", at)
    except ValueError:
        hint = f"a value is UTF-8 text of at most {LARGEST // 1024} KiB"
        return ModelError(f"the file '{brief(path)}' holds no value", at, hint)
