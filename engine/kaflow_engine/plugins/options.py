"""Options that an author says to a plugin, as the plugin takes them."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from kaflow_engine.errors import Location, ModelError, UnknownName


def wrong_options(
    kind: str, takes: type[BaseModel], said: Mapping[str, Any], at: Mapping[str, Location | None]
) -> Iterator[ModelError]:
    """Yield an error for each option that a plugin does not take.

    Args:
        kind: The plugin.
        takes: What it takes.
        said: What the author says.
        at: Where each option stands; of "", where all of them do.
    """
    try:
        takes.model_validate(dict(said))
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            name = str(detail["loc"][0]) if detail["loc"] else ""
            place = at.get(name, at[""])
            if detail["type"] == "extra_forbidden":
                yield UnknownName("option", name, takes.model_fields, place)
            elif detail["type"] == "missing":
                yield ModelError(f"'{kind}' needs the option '{name}'", place)
            else:
                wrong = detail["msg"][:1].lower() + detail["msg"][1:]
                yield ModelError(f"option '{name}' of '{kind}': {wrong}", place)
