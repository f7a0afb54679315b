"""The formats of records, by the names that files give them."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, cast

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


def with_options(name: str, options: Mapping[str, Any]) -> str:
    """Return the name of a plugin and the options of its format as one text, which plans carry.

    >>> with_options("acme.cut", {"sign": ";"})
    'acme.cut{"sign":";"}'
    """
    if not options:
        return name
    return name + json.dumps(options, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def parts_of(name: str) -> tuple[str, Mapping[str, Any]]:
    """Return the name of a plugin, and the options of its format.

    >>> parts_of('acme.cut{"sign":";"}')
    ('acme.cut', {'sign': ';'})
    """
    plugin, brace, rest = name.partition("{")
    return plugin, json.loads(brace + rest) if brace else {}


def with_own_options(said: object) -> object:
    """Return a specification whose `format` carries its `format_options`, as plans have them."""
    if not isinstance(said, Mapping):
        return said
    found = cast(Mapping[str, Any], said)
    name, options = found.get("format"), found.get("format_options")
    if not isinstance(name, str) or not isinstance(options, Mapping) or "." not in name:
        return found
    return {**found, "format": with_options(parts_of(name)[0], cast(Mapping[str, Any], options))}


def _known(name: object) -> object:
    if isinstance(name, str) and is_plugin_name(parts_of(name)[0]):
        return name
    if isinstance(name, str) and is_format(name):
        return name
    if isinstance(name, str) and "." in name:
        return plugin_name(name)
    known = " or ".join(f"'{each}'" for each in FORMATS)
    raise PydanticCustomError("literal_error", "unknown format", {"expected": known})


FormatName = Annotated[str, BeforeValidator(_known)]
"""A name that the table has, or that of a plugin; any other one is reported with those that there
are."""
