"""The engine of scripts: one context, with limits, in which rows are run chunk by chunk."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module, resources
from typing import Any

from kaflow_engine.errors import ModelError
from kaflow_engine.extras import EXTRAS
from kaflow_engine.flow.transforms import ScriptParams

STACK = 200_000
"""Bytes: less than the stack of a thread has."""
OWN_MEMORY = 16_000_000
"""Bytes that the engine and a chunk of rows may have beside the script."""
_FUNCTIONS = ("process", "invoke")
_OPENS = '(function () { "use strict"; '
_FOUND = "".join(f"typeof {name} === 'function' ? {name} : " for name in _FUNCTIONS)
_CLOSES = f"\n;return {_FOUND}null; }})"
_OURS = 100_000
"""The first line of what is no part of the script; the engine tells lines, and no files."""
_INTERRUPTED = "interrupted"
_PICK = "((made, name) => made[name])"
_PLACE = re.compile(r"<input>:(\d+)")

Outcome = Sequence[str] | Mapping[str, str]
"""The packed rows that a row became; or `unfit` or `message` and `stack`: what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a script may use."""

    seconds: float
    """Of processor time, for one row."""
    memory: int
    """Bytes."""


def limits_of(params: ScriptParams) -> Limits:
    """Return what a script may use."""
    return Limits(seconds=params.timeout / 1000, memory=params.memory)


class ScriptMistake(Exception):
    """A script that is none, or that fails before it gets a row."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class Ended(Exception):
    """The engine ended a script, which used up its time or memory."""

    def __init__(self, *, by_time: bool) -> None:
        super().__init__()
        self.by_time = by_time


class ScriptEngine:
    """A script, and the columns that it sees. What is said of it holds for each row alone: none
    leaves anything behind for the next one.

    Args:
        text: The script.
        inputs: Columns that go in, as `codec_of` says them.
        outputs: Columns that go out.
        limits: What it may use.

    Raises:
        ScriptMistake: It is none.
        ModelError: The package is not there.
    """

    def __init__(
        self,
        text: str,
        inputs: Sequence[Mapping[str, Any]],
        outputs: Sequence[Mapping[str, Any]],
        limits: Limits,
    ) -> None:
        self._text, self._limits = text, limits
        self._engine = engine()
        self._context = self._engine.Context()
        self._context.set_memory_limit(limits.memory + OWN_MEMORY)
        self._context.set_max_stack_size(STACK)
        rows = self._context.eval(_source("rows.js"))
        self._context.eval(_source("seal.js"))
        made, pick = rows(json.dumps(inputs), json.dumps(outputs)), self._context.eval(_PICK)
        self._run, self._done = pick(made, "run"), pick(made, "done")
        self._context.set_time_limit(limits.seconds)
        try:
            self._make = self._context.eval(f"{_OPENS}{text}{_CLOSES}")
            found = self._make()
        except self._engine.JSException as error:
            message, line = place_of(str(error), text)
            if _INTERRUPTED in message:
                message = f"it took more than {limits.seconds:g}s before its first row"
            raise ScriptMistake(message, line or 1) from error
        if found is None:
            raise ScriptMistake("it has no function process(row)", 1)

    def run(self, rows: str, start: int) -> list[Outcome]:
        """Run packed rows, from one of them on.

        Args:
            rows: A JSON list of them.
            start: The first one.

        Returns:
            What became of the rows before it was ended, or of all of them.

        Raises:
            Ended: None of them was done.
        """
        try:
            self._run(rows, start, self._make)
        except self._engine.JSException as error:
            found: list[Outcome] = json.loads(self._done())
            if not found:
                raise Ended(by_time=_INTERRUPTED in str(error)) from error
            return found
        return json.loads(self._done())


def place_of(error: str, text: str) -> tuple[str, int | None]:
    """Return the first line of an error, and the line of the script at which it arose; None: it
    arose elsewhere."""
    message, _, stack = error.partition("\n")
    lines = (int(line) for line in _PLACE.findall(stack))
    line, last = next((n for n in lines if n < _OURS), None), text.rstrip().count("\n") + 1
    if line is not None and line > last:  # at what we write behind it
        return "SyntaxError: the script ends before its last function or block does", last
    return message, line


def engine() -> Any:
    """Return the module of the engine.

    Raises:
        ModelError: It is not installed.
    """
    try:
        return import_module("quickjs")
    except ImportError as error:
        raise ModelError(
            "scripts need the package quickjs-ng, which is not installed",
            hint=EXTRAS["script"].install,
        ) from error


@cache
def _source(name: str) -> str:
    text = resources.files("kaflow_engine.transforms.script").joinpath(name).read_text("utf-8")
    return "\n" * _OURS + text
