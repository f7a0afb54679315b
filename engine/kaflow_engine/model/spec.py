"""The base of everything read from a file."""

from collections.abc import Mapping
from typing import TypeAlias, cast

from pydantic import BaseModel, ConfigDict

Path: TypeAlias = tuple[str | int, ...]
"""The keys and list positions that lead to a value."""


CHOICE = "\0"
"""Begins the tags of unions, which distinguishes them from keys that authors write."""


def type_of(value: object) -> object:
    """Return the `type` of what an author wrote, or of what was made of it; None: there is none.

    >>> type_of({"type": "files"}), type_of([])
    ('files', None)
    """
    if isinstance(value, dict):
        return cast(Mapping[str, object], value).get("type")
    return getattr(value, "type", None)


class Spec(BaseModel):
    """Base of everything read from a file: immutable, and strict about unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)
