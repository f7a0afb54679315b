"""Errors on their way from a worker to the driver: data with a fixed schema inside Spark's text.

Spark hands on what a task raises as text, among texts that others have chosen: names of files,
words of records. So the text of an error is marked with a secret that only this driver and its
tasks know, and whatever is marked becomes an error of a known class with words in it, nothing else.
"""

import base64
import re
from collections.abc import Mapping
from secrets import token_hex

from pydantic import BaseModel, ConfigDict, Field

from kaflow_engine.errors import KaflowError, Location, RunError, causes_of

SECRET = token_hex(16)
"""Of this process, if it is a driver; tasks get it with their settings."""


class TaskFailed(RunError):
    """A task failed for a reason that no one foresaw; `details` is its stack."""

    def __init__(self, message: str, details: str = "", hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.details = details


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: str
    message: str
    hint: str | None = None
    file: str | None = None
    line: int | None = Field(default=None, ge=1)
    details: str = ""
    causes: list[str] = []


def pack(error: KaflowError, kinds: Mapping[str, type[KaflowError]], secret: str) -> str:
    """Return an error as marked text.

    Args:
        error: Becomes one of its nearest class that the table has.
        kinds: Name of a class → the class.
        secret: Of the driver.
    """
    kind = next((k.__name__ for k in type(error).__mro__ if k.__name__ in kinds), "RunError")
    wire = _Wire(
        kind=kind,
        message=error.message,
        hint=error.hint,
        file=error.at.file if error.at else None,
        line=error.at.line if error.at else None,
        details=error.details if isinstance(error, TaskFailed) else "",
        causes=list(causes_of(error)),
    )
    return f"<<kaflow:{secret}:{base64.b64encode(wire.model_dump_json().encode()).decode()}>>"


def unpack(
    text: str, kinds: Mapping[str, type[KaflowError]], secret: str = SECRET
) -> KaflowError | None:
    """Return the first error that a text holds and this driver's tasks have packed."""
    match = re.search(rf"<<kaflow:{secret}:([A-Za-z0-9+/]+=*)>>", text)
    if match is None:
        return None
    try:
        wire = _Wire.model_validate_json(base64.b64decode(match[1]))
    except ValueError:
        return None
    kind = kinds.get(wire.kind, RunError)
    at = None if wire.file is None else Location(wire.file, wire.line)
    if issubclass(kind, TaskFailed):
        found: KaflowError = TaskFailed(wire.message, wire.details, wire.hint)
    else:
        found = kind(wire.message, at, wire.hint)
    found.causes = tuple(wire.causes)
    return found
