"""What the author of a DAG hands to a task, and the mistakes in it."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, cast, get_args
from urllib.parse import urlsplit

from kaflow_engine.airflow.endings import Ending
from kaflow_engine.errors import ModelError, UnknownName

_ENDINGS = tuple(ending for ending in get_args(Ending) if ending != "success")
_ENDLESS = ("dev", "demo")
_ENDS_BY = ("--until-caught-up", "--max-records")
_TEMPLATE = ("{{", "{%")


def checked_arguments(found: object, *, rendered: bool = False) -> list[Any]:
    """Return the arguments of a command, a text each.

    Args:
        found: What the author wrote, or what templates have made of it.
        rendered: Whether templates and results of other tasks have become texts.

    Raises:
        ModelError: They are no list of texts, or name a command that does not end.
    """
    if not rendered and _comes_later(found):
        return cast("list[Any]", found)
    if isinstance(found, str) or not isinstance(found, Sequence):
        raise ModelError(
            f"'arguments' is {_shown(found)}, and must be a list of texts",
            hint='write a text for each word: ["run", "pipelines", "--until-caught-up"]',
        )
    words = list(cast(Sequence[object], found))
    if not words:
        raise ModelError("'arguments' is empty", hint='begin with a command: ["check", "orders"]')
    for number, word in enumerate(words):
        if not isinstance(word, str) and (rendered or not _comes_later(word)):
            raise ModelError(
                f"'arguments[{number}]' is {_shown(word)}, and must be a text",
                hint=f'write "{word}"' if isinstance(word, int | float) else None,
            )
    texts = [word for word in words if isinstance(word, str)]
    if rendered or (len(texts) == len(words) and not any(map(_is_template, texts))):
        _require_end(texts)
    return words


def checked_exit_codes(found: object) -> dict[int, Ending]:
    """Return what the author says of exit codes.

    Raises:
        ModelError: A code cannot be one of a failure, or what is said of it is unknown.
    """
    if not isinstance(found, Mapping):
        raise ModelError(
            f"'exit_codes' is {_shown(found)}, and must map codes to endings",
            hint='write {1: "skip"}',
        )
    codes = cast(Mapping[object, object], found)
    for code, ending in codes.items():
        if not isinstance(code, int) or isinstance(code, bool) or not 0 < code < 256:
            raise ModelError(
                f"'exit_codes' has {_shown(code)}, which is no exit code of a failure",
                hint="codes are numbers from 1 to 255; docs/operations.md lists kaflow's",
            )
        if ending not in _ENDINGS:
            raise UnknownName(f"ending of exit code {code}", str(ending), _ENDINGS)
    return cast("dict[int, Ending]", dict(codes))


def checked_environment(found: object) -> dict[str, Any]:
    """Return the variables of the environment of a command.

    Raises:
        ModelError: They are no texts.
    """
    if not isinstance(found, Mapping):
        raise ModelError(
            f"'environment' is {_shown(found)}, and must map names to texts",
            hint='write {"KAFKA_BROKERS": "kafka:9092"}',
        )
    variables = cast(Mapping[object, object], found)
    for name, value in variables.items():
        if not isinstance(name, str) or not name or "=" in name:
            raise ModelError(f"'environment' has {_shown(name)}, which is no name of a variable")
        if not isinstance(value, str) and not _comes_later(value):
            raise ModelError(f"'environment[{name}]' is {_shown(value)}, and must be a text")
    return cast("dict[str, Any]", dict(variables))


def checked_folder(found: object) -> Any:
    """Return a folder as a text.

    Raises:
        ModelError: It is none.
    """
    if _comes_later(found):
        return found
    folder = os.fspath(cast("str | os.PathLike[str]", found)) if _is_path(found) else ""
    if not folder:
        raise ModelError(
            f"'project' is {_shown(found)}, and must be a folder",
            hint='write the folder that has kaflow.yaml: "/srv/shop"',
        )
    return folder


def checked_url(found: object, *, rendered: bool = False) -> Any:
    """Return the address of the port of a stream.

    Raises:
        ModelError: It is none.
    """
    if not rendered and (_comes_later(found) or (isinstance(found, str) and _is_template(found))):
        return found
    if not isinstance(found, str):
        raise ModelError(f"'url' is {_shown(found)}, and must be a text", hint=_URL)
    parts = urlsplit(found)
    try:
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of the port
        sound = False
    if not sound:
        raise ModelError(f"'url' is '{found}', which is no address of HTTP", hint=_URL)
    if parts.path.strip("/") or parts.query:
        path = found.partition(parts.netloc)[2]
        raise ModelError(f"'url' is '{found}', and has a path", hint=f"leave out '{path}'")
    return found.rstrip("/")


_URL = 'write the address that `kaflow run` says at its start, such as "http://127.0.0.1:8080"'


def _require_end(words: Sequence[str]) -> None:
    command, *options = words
    if command.startswith("-"):
        raise ModelError(
            f"'{command}' is no command",
            hint='begin with one, such as "run"; options stand behind it',
        )
    if command in _ENDLESS:
        raise ModelError(
            f"'kaflow {command}' is for a terminal, and does not end",
            hint="use `run` or `backfill`",
        )
    if command == "run" and not any(option.startswith(_ENDS_BY) for option in options):
        raise ModelError(
            "'kaflow run' may not end by itself, and a task must",
            hint="add --until-caught-up, also where all sources end, or --max-records; what "
            "streams all day is a service, for which KaflowReadySensor waits",
        )


def _is_template(text: str) -> bool:
    return any(begin in text for begin in _TEMPLATE)


def _is_path(value: object) -> bool:
    return isinstance(value, str | os.PathLike)


def _comes_later(value: object) -> bool:
    """Tell whether it is a result of another task or a parameter, which Airflow puts in."""
    return hasattr(value, "iter_references")


def _shown(value: object) -> str:
    match value:
        case str():
            return f"the text '{value}'"
        case None:
            return "None"
        case bool() | int() | float():
            return f"the number {value}" if not isinstance(value, bool) else str(value)
        case _:
            return f"a {type(value).__name__}"
