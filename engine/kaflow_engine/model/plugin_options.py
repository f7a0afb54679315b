"""What an author says to a plugin."""

from typing import Annotated

from pydantic import BeforeValidator

from kaflow_engine.model.names import refuse


def _one(value: object) -> object:
    if isinstance(value, list | dict):
        raise refuse("must be one value", "write a text, a number, true or false")
    return value


Option = Annotated[str | int | float | bool | None, BeforeValidator(_one)]
"""What an author says to a plugin under one name."""
