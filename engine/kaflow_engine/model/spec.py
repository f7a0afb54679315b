"""The base of everything read from a file."""

from typing import TypeAlias

from pydantic import BaseModel, ConfigDict

Path: TypeAlias = tuple[str | int, ...]
"""The keys and list positions that lead to a value."""


CHOICE = "\0"
"""Begins the tags of unions, which distinguishes them from keys that authors write."""


class Spec(BaseModel):
    """Base of everything read from a file: immutable, and strict about unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)
