"""Encode rows as XML documents: an element for each column, none for NULL."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast
from xml.etree.ElementTree import Element, SubElement, tostring

import pyarrow as pa

from kaflow_engine.formats.contract import format_of
from kaflow_engine.formats.decoded import BadValue, Encoded, shown
from kaflow_engine.model.columns import Column

ROOT = "Value"
"""What the outermost element is called."""
_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_NEVER = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that XML does not have."""


def is_name(name: str) -> bool:
    """Tell whether an element may be called so."""
    return _NAME.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class XmlEncoder:
    """Writes rows by way of JSON, whose texts of numbers and times it takes over."""

    columns: tuple[Column, ...]

    def sql(self, names: Mapping[str, str]) -> str | None:
        """Return None: no SQL writes XML."""
        return None

    def encode(self, rows: pa.Table) -> Encoded:
        """Encode rows; one with a character that XML does not have is bad."""
        objects = format_of("json").encoder(self.columns, None).encode(rows)
        values: list[bytes | None] = []
        bad = list(objects.bad)
        for place, text in enumerate(objects.values):
            if text is None:
                values.append(None)
                continue
            root = Element(ROOT)
            try:
                _fill(root, cast(Mapping[str, object], json.loads(text, parse_float=str)))
            except _CannotWrite as error:
                bad.append(BadValue(place, "CannotEncode", str(error)))
                values.append(None)
                continue
            # a reader would take a carriage return that is not escaped for a line feed
            values.append(tostring(root, encoding="utf-8").replace(b"\r", b"&#13;"))
        return Encoded(pa.array(values, pa.binary()), tuple(sorted(bad, key=lambda b: b.row)))


class _CannotWrite(Exception):
    """XML does not have what a row has."""


def _fill(element: Element, fields: Mapping[str, object]) -> None:
    for name, value in fields.items():
        if not is_name(name):
            raise _CannotWrite(f"'{shown(name)}' is no name of an XML element")
        several = isinstance(value, list)
        for one in cast(Sequence[object], value) if several else (value,):
            if one is not None or several:
                _add(SubElement(element, name), one)


def _add(element: Element, value: object) -> None:
    match value:
        case None:
            element.set("nil", "true")
        case dict():
            _fill(element, cast(Mapping[str, object], value))
        case list():
            for one in cast(Sequence[object], value):
                _add(SubElement(element, element.tag), one)
        case bool():
            element.text = "true" if value else "false"
        case _:
            element.text = str(value)
            if _NEVER.search(element.text):
                raise _CannotWrite("a text has a character that XML does not have")
