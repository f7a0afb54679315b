"""Decode XML documents into columns.

A column is the child of that name of the outermost element, else its attribute; of a list all
children of that name; of a struct what stands inside of the child. Namespaces are left out. Texts
are read as JSON reads strings of the column's type; an empty element is an empty text, of other
types NULL, as is one with `nil="true"`. Documents with a DOCTYPE are bad: they could define
entities, which grow without limit or read files.
"""

import json
from collections.abc import Iterator, Sequence
from typing import NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

import pyarrow as pa

from kaflow_engine.formats.decoded import BadValue, Decoded, Unreadable, shown
from kaflow_engine.formats.json.decode import decode_json
from kaflow_engine.formats.types import List, Map, Scalar, Struct, Type, parse_type
from kaflow_engine.model.columns import Column

_KIND = "InvalidXml"
_TEXTS = (Scalar("VARCHAR"), Scalar("BLOB"))


def decode_xml(values: pa.Array | pa.ChunkedArray, columns: Sequence[Column]) -> Decoded:
    """Decode `values` (binary, none null), one document each, into `columns`."""
    kinds = [(column.name, parse_type(column.type)) for column in columns]
    texts: list[bytes] = []
    places: list[int] = []
    bad: list[BadValue] = []
    for place, value in enumerate(values.to_pylist()):
        try:
            root = _parsed(value)
        except Unreadable as error:
            bad.append(error.at(place))
            continue
        found = {name: _field(root, name, kind) for name, kind in kinds}
        texts.append(json.dumps(found).encode())
        places.append(place)
    decoded = decode_json(pa.array(texts, pa.binary()), columns)
    bad += [BadValue(places[one.row], one.error, one.message) for one in decoded.bad]
    good = pa.array(places, pa.int64()).take(decoded.good)
    return Decoded(decoded.table, good, tuple(sorted(bad, key=lambda one: one.row)))


def _parsed(value: bytes) -> Element:
    """Return the outermost element.

    Raises:
        Unreadable: It is no XML, or has a DOCTYPE.
    """
    builder, parser = TreeBuilder(), expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = _refuse
    try:
        parser.Parse(value, True)
        return builder.close()
    except expat.ExpatError as error:
        why = shown(f"line {error.lineno}, column {error.offset}: {expat.ErrorString(error.code)}")
        raise Unreadable(_KIND, f"the value is no XML: {why}") from error
    except (LookupError, ValueError) as error:  # of Python's codecs
        why = shown(f"encoding: {error}")
        raise Unreadable(_KIND, f"the value is no XML: {why}") from error


def _refuse(*_: object) -> NoReturn:
    raise Unreadable(_KIND, "the document has a DOCTYPE, and entities are not read")


def _field(of: Element, name: str, kind: Type) -> object:
    children = list(_children(of, name))
    if isinstance(kind, List):
        return [_value(child, kind.element) for child in children]
    if children:
        return _value(children[0], kind)
    return next((text for called, text in of.attrib.items() if _local(called) == name), None)


def _children(of: Element, name: str) -> Iterator[Element]:
    return (child for child in of if _local(child.tag) == name)


def _value(element: Element, kind: Type) -> object:
    nil = (text for called, text in element.attrib.items() if _local(called) == "nil")
    if next(nil, "false") in ("true", "1"):
        return None
    match kind:
        case Struct(fields=fields):
            return {name: _field(element, name, inner) for name, inner in fields}
        case Map(value=List(element=inner)):
            lists: dict[str, list[object]] = {}
            for child in element:
                lists.setdefault(_local(child.tag), []).append(_value(child, inner))
            return lists
        case Map(value=inner):
            return {_local(child.tag): _value(child, inner) for child in element}
        case List():
            return [_value(child, kind.element) for child in element]
        case _:
            text = "".join(element.itertext())
            return text if kind in _TEXTS else text.strip() or None


def _local(name: str) -> str:
    return name.rpartition(":")[2]
