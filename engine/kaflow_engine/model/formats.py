"""The formats of records, by the names that files give them."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from kaflow_engine.model.plugin_options import is_plugin_name, plugin_name

FORMATS: dict[str, str] = {
    "avro": "kaflow_engine.formats.avro.format:AvroFormat",
    "csv": "kaflow_engine.formats.csv.format:CsvFormat",
    "json": "kaflow_engine.formats.json.format:JsonFormat",
    "json_spaced": "kaflow_engine.formats.json.format:SpacedJsonFormat",
    "json_schema": "kaflow_engine.formats.json_schema.format:JsonSchemaFormat",
    "protobuf": "kaflow_engine.formats.protobuf.format:ProtobufFormat",
    "raw": "kaflow_engine.formats.raw.format:RawFormat",
    "xml": "kaflow_engine.formats.xml.format:XmlFormat",
}
"""Name → module and class of a `formats.contract.Format`; imported when it is used."""
PLUGIN = "kaflow_engine.formats.plugin.format:PluginFormat"
"""The class of formats whose names have a dot: packages offer them."""

WITH_SCHEMA = ("avro", "json_schema", "protobuf")
"""Those whose schemas are in the schema registry, under a name that an author may choose."""
WITH_FIELDS = ("avro",)
"""Those whose schema an author may give field by field."""


def one_of(names: Sequence[str]) -> str:
    """Return names as a choice.

    >>> one_of(("a", "b", "c"))
    'a, b or c'
    """
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def is_format(name: str) -> bool:
    """Tell whether a name may be that of a format: the table has it, or it is that of a plugin."""
    return name in FORMATS or is_plugin_name(name)


def _known(name: object) -> object:
    if isinstance(name, str) and is_format(name):
        return name
    if isinstance(name, str) and "." in name:
        return plugin_name(name)
    known = " or ".join(f"'{each}'" for each in FORMATS)
    raise PydanticCustomError("literal_error", "unknown format", {"expected": known})


FormatName = Annotated[str, BeforeValidator(_known)]
"""A name that the table has, or that of a plugin; any other one is reported with those that there
are."""
