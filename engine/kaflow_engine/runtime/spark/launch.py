"""Launches the driver's JVM with its settings in files that only this user can read."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from subprocess import PIPE
from tempfile import TemporaryDirectory
from typing import Any

from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway  # pyright: ignore[reportUnknownVariableType]  # untyped

from kaflow_engine.errors import RunError

_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
_SHELL = "pyspark-shell"
_IN_QUOTES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})
_IN_PROPERTIES = str.maketrans(
    {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f", **{c: f"\\{c}" for c in " \\:=#!"}}
)
_JAVA_OPTIONS = ("spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions")


def start_jvm(conf: SparkConf) -> Any:
    """Start the JVM of a driver; returns its gateway, with the pipe of its standard error.

    Everyone on the machine can read command lines, and settings hold passwords and keys.

    Raises:
        RunError: Java options cannot be taken apart.
    """
    before = os.environ.get(_ARGUMENTS)
    with TemporaryDirectory(prefix="kaflow-spark-") as folder:  # its mode is 0700
        settings = _without_java_options(dict(conf.getAll()), Path(folder))
        file = _private(Path(folder) / "settings.properties", properties_text(settings))
        own = f"--extra-properties-file {shlex.quote(str(file))}"
        os.environ[_ARGUMENTS] = f"{own} {before or _SHELL}"
        try:
            # a group of its own: signals to that of this process are for us to pass on
            how = {"stderr": PIPE, "process_group": 0}
            return launch_gateway(None, how)  # returns when Spark has read the files
        finally:
            _restore(before)


def properties_text(settings: Mapping[str, str]) -> str:
    """Write settings as Java's properties files hold them."""
    return "".join(f"{_escaped(name)}={_escaped(value)}\n" for name, value in settings.items())


def argument_file(options: list[str]) -> str:
    """Write options of `java` as it reads them from the file that `@FILE` names."""
    return "".join(f'"{option.translate(_IN_QUOTES)}"\n' for option in options)


def _without_java_options(settings: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Spark puts these settings into the command line of the JVM itself."""
    found = dict(settings)
    for name in _JAVA_OPTIONS:
        options = _words(name, found.get(name, ""))
        # java takes no such file inside of another
        files = [option for option in options if option.startswith("@")]
        rest = [option for option in options if not option.startswith("@")]
        if rest:
            files.append(f"@{_private(folder / f'{name}.options', argument_file(rest))}")
        if files:
            found[name] = shlex.join(files)
    return found


def _words(name: str, options: str) -> list[str]:
    try:
        return shlex.split(options)
    except ValueError as error:
        message = f"'{name}' cannot be read: a quotation has no end"
        raise RunError(message, hint="close it, or write a backslash before the quote") from error


def _private(path: Path, text: str) -> Path:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    return path


def _restore(before: str | None) -> None:
    if before is None:
        del os.environ[_ARGUMENTS]
    else:
        os.environ[_ARGUMENTS] = before


def _escaped(text: str) -> str:
    return "".join(map(_letter, text.translate(_IN_PROPERTIES)))


def _letter(letter: str) -> str:
    if letter.isascii():
        return letter
    units = letter.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
