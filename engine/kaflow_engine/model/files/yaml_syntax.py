"""YAML text → composed nodes, with mistakes in our own words."""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

import yaml

from kaflow_engine.errors import Location, ModelError

# Part of PyYAML's text → what the author should read, and what to do.
_WORDS: tuple[tuple[str, str, str | None], ...] = (
    ("cannot start any token", "a character that cannot start a value", "put the text in quotes"),
    (
        "mapping values are not allowed",
        "a ':' where no key can stand",
        "put text that contains ': ' in quotes, and check the indentation",
    ),
    (
        "expected <block end>",
        "this line does not fit the lines above it",
        "check its indentation, and that every key ends in ':'",
    ),
    (
        "could not find expected ':'",
        "a key without ':'",
        "write key: value; text of several lines begins with |, as in query: |",
    ),
    ("unexpected end of stream", "a quote that is never closed", "close it"),
    ("expected ',' or ']'", "a list that is never closed", "close it with ]"),
    ("expected ',' or '}'", "a mapping that is never closed", "close it with }"),
    (
        "undefined alias",
        "an alias of an anchor that does not exist",
        "put text that begins with * in quotes, or define the anchor above",
    ),
    ("expected a single document", "more than one document in the file", "one file, one document"),
    (
        "unknown escape character",
        "an unknown escape in double quotes",
        "use single quotes, or write \\\\ for a backslash",
    ),
    ("found unexpected ':'", "a ':' where no key can stand", "put the text in quotes"),
    ("found unexpected document", "a quote that is never closed", "close it"),
)
_QUOTED = re.compile(r"""(: |- )\s*(['"]).*\2""")
_OPENED_EARLIER = ("end of stream", "',' or", "unexpected document")


def compose(text: str, at: Location) -> yaml.Node | None:
    """Return the root node of the text of a file, None if nothing stands in it.

    Raises:
        ModelError: The text is not YAML.
    """
    try:
        return _compose(text)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        message = f"a character that YAML does not allow (U+{_code(error.character):04X})"
        raise ModelError(message, replace(at, line=line), "remove it") from error
    except yaml.MarkedYAMLError as error:
        raise _in_our_words(error, text, at) from error
    except RecursionError as error:
        raise ModelError("nested too deeply", at) from error


def _in_our_words(error: yaml.MarkedYAMLError, text: str, file: Location) -> ModelError:
    problem = f"{error.context} {error.problem}"
    mark = error.problem_mark or error.context_mark
    if error.context_mark and any(part in problem for part in _OPENED_EARLIER):
        mark = error.context_mark
    at = replace(file, line=mark.line + 1 if mark else None)
    lines = text.splitlines()
    line = lines[mark.line] if mark and mark.line < len(lines) else ""
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return ModelError("a tab in the indentation", at, "indent with spaces")
    if "${" in line and "',' or" in problem:
        return ModelError(
            "a variable inside { } or [ ] without quotes", at, 'write it in quotes: "${NAME}"'
        )
    if "found '<scalar>'" in problem and mark and _QUOTED.search(line[: mark.column]):
        hint = "write '' for a quote inside '…', and \\\" inside \"…\""
        return ModelError("text after a closing quote", at, hint)
    for part, message, hint in _WORDS:
        if part in problem:
            return ModelError(message, at, hint)
    return ModelError("this is not valid YAML", at, "check indentation, quotes and brackets")


def _code(character: int | bytes | str) -> int:
    return character if isinstance(character, int) else ord(character)


def _compose(text: str) -> yaml.Node | None:
    loader = _fast_loader()
    if loader is not None:
        # Its messages are not those that are put in our own words below.
        with suppress(yaml.YAMLError):
            return loader(text).get_single_node()
    return yaml.SafeLoader(text).get_single_node()


@cache
def _fast_loader() -> "Callable[[str], Any] | None":
    """Return a loader over libyaml, several times as fast; None where PyYAML is built without."""
    parser = getattr(yaml, "CSafeLoader", None)
    if parser is None:
        return None

    from yaml.composer import Composer

    class Loader(Composer, parser):  # pyright: ignore[reportUntypedBaseClass]  # may not be there
        """Composes in Python, because libyaml's own composer crashes on deep nesting."""

        def __init__(self, text: str) -> None:
            parser.__init__(self, text)
            Composer.__init__(self)

    return Loader
