"""The formats of records, by the names that files give them."""

from typing import Annotated

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

FORMATS: dict[str, str] = {
    "avro": "kaflow_engine.formats.avro.format:AvroFormat",
    "json": "kaflow_engine.formats.json.format:JsonFormat",
}
"""Name → module and class of a `formats.contract.Format`; imported when it is used."""


def _known(name: object) -> object:
    if isinstance(name, str) and name in FORMATS:
        return name
    known = " or ".join(f"'{each}'" for each in FORMATS)
    raise PydanticCustomError("literal_error", "unknown format", {"expected": known})


FormatName = Annotated[str, BeforeValidator(_known)]
"""A name that the table has; any other one is reported with those that there are."""
