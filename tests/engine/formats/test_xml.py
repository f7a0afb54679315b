"""XML documents as columns, and the other way."""
# pyright: basic

import pyarrow as pa
import pytest

from kaflow_engine.errors import ModelError
from kaflow_engine.formats.contract import format_of, no_schema
from kaflow_engine.formats.types import arrow_type
from kaflow_engine.model.columns import Column

XML = format_of("xml")
READ = [
    ("VARCHAR", b"<r><c> a </c></r>", " a "),
    ("VARCHAR", b"<r><c/></r>", ""),
    ("VARCHAR", b"<r><c>a<!-- x --><![CDATA[<b>]]></c></r>", "a<b>"),
    ("VARCHAR", b"<r><c>&lt;&#228;&amp;</c></r>", "<ä&"),
    ("VARCHAR", b"<r/>", None),
    ("VARCHAR", b'<r c="of an attribute"/>', "of an attribute"),
    ("VARCHAR", b'<r c="x"><c>of a child</c></r>', "of a child"),
    ("VARCHAR", b'<r xmlns:n="u"><n:c>a</n:c></r>', "a"),
    ("VARCHAR", b'<r><c nil="true"/></r>', None),
    ("VARCHAR", b'<?xml version="1.0" encoding="ISO-8859-1"?><r><c>\xe4</c></r>', "ä"),
    ("INTEGER", b"<r><c> 5\n</c></r>", 5),
    ("INTEGER", b"<r><c></c></r>", None),
    ("BOOLEAN", b"<r><c>true</c></r>", True),
    ("DOUBLE", b"<r><c>1.5</c></r>", 1.5),
    ("INTEGER[]", b"<r><c>1</c><d/><c>2</c></r>", [1, 2]),
    ("INTEGER[]", b"<r/>", []),
    (
        "STRUCT(x INTEGER, y VARCHAR[])",
        b'<r><c x="1"><y>a</y><y>b</y></c></r>',
        {"x": 1, "y": ["a", "b"]},
    ),
    ("INTEGER[][]", b"<r><c><i>1</i><i>2</i></c><c><i>3</i></c></r>", [[1, 2], [3]]),
    (
        "MAP(VARCHAR, INTEGER[])",
        b"<r><c><a>1</a><b>2</b><a>3</a></c></r>",
        [("a", [1, 3]), ("b", [2])],
    ),
    ("MAP(VARCHAR, INTEGER)", b"<r><c><a>1</a><b>2</b></c></r>", [("a", 1), ("b", 2)]),
]
BAD = [
    (b"<r><c>", "no element found"),
    (b"", "no element found"),
    (b"<r/><r/>", "junk after document element"),
    (b'<!DOCTYPE r [<!ENTITY a "b">]><r><c>&a;</c></r>', "has a DOCTYPE"),
    (b'<!DOCTYPE r SYSTEM "file:///etc/passwd"><r/>', "has a DOCTYPE"),
    (b"<r><c>&unknown;</c></r>", "undefined entity"),
    (b'<?xml version="1.0" encoding="none-such"?><r/>', "unknown encoding"),
    (b'<?xml version="1.0" encoding="gbk"?><r/>', "multi-byte encodings are not supported"),
    (b'<?xml version="1.0" encoding="hex"?><r/>', "the value is no XML: encoding: "),
    (b'<?xml version="1.0" encoding="idna"?><r/>', "the value is no XML: encoding: "),
]


@pytest.mark.parametrize(("kind", "value", "found"), READ)
def test_a_document_is_read(kind, value, found):
    decoded = XML.decode(pa.array([value], pa.binary()), [Column("c", kind)], no_schema)
    assert decoded.bad == ()
    assert decoded.table["c"].to_pylist() == [found]


@pytest.mark.parametrize(("value", "why"), BAD)
def test_a_document_is_bad(value, why):
    values = pa.array([b"<r><c>1</c></r>", value, b"<r><c>x</c></r>"], pa.binary())
    decoded = XML.decode(values, [Column("c", "INTEGER")], no_schema)
    assert decoded.table["c"].to_pylist() == [1]
    assert [bad.row for bad in decoded.bad] == [1, 2]
    assert why in decoded.bad[0].message


def test_what_is_written_is_read():
    columns = [Column("a", "VARCHAR"), Column("b", "STRUCT(x DOUBLE)[]"), Column("c", "BOOLEAN")]
    of_doubles = pa.list_(pa.struct({"x": pa.float64()}))
    rows = pa.table(
        {
            "a": ["<&>", None],
            "b": pa.array([[{"x": 1.5}, {"x": None}], []], of_doubles),
            "c": [False, None],
        }
    )
    encoded = XML.encoder(columns, None).encode(rows)
    assert encoded.values == [
        b"<Value><a>&lt;&amp;&gt;</a><b><x>1.5</x></b><b /><c>false</c></Value>",
        b"<Value />",
    ]
    assert XML.decode(encoded.array, columns, no_schema).table.to_pylist() == rows.to_pylist()


NESTED = [
    ("INTEGER[][]", [[1, 2], None, [3]], b'<c><c>1</c><c>2</c></c><c nil="true" /><c><c>3</c></c>'),
    ("MAP(VARCHAR, INTEGER[])", [("a", [1, 3])], b"<c><a>1</a><a>3</a></c>"),
    ("VARCHAR", "a\r\nb", b"<c>a&#13;\nb</c>"),
]


@pytest.mark.parametrize(("kind", "value", "text"), NESTED)
def test_nested_values_and_line_ends_are_read_as_they_were(kind, value, text):
    columns = [Column("c", kind)]
    rows = pa.table([pa.array([value], arrow_type(kind))], ["c"])
    encoded = XML.encoder(columns, None).encode(rows)
    assert encoded.values == [b"<Value>" + text + b"</Value>"]
    assert XML.decode(encoded.array, columns, no_schema).table.to_pylist() == rows.to_pylist()


@pytest.mark.parametrize("kind", ['STRUCT("a b" INTEGER)', 'MAP(VARCHAR, STRUCT("<a>" INTEGER)[])'])
def test_fields_that_are_no_elements_are_refused(kind):
    with pytest.raises(ModelError, match="XML has no element"):
        XML.schema_of([Column("c", kind)], "t")


def test_a_key_that_is_no_element():
    columns, kind = [Column("c", "MAP(VARCHAR, INTEGER)")], arrow_type("MAP(VARCHAR, INTEGER)")
    rows = pa.table([pa.array([[("a><b", 1)], [("a", 1)]], kind)], ["c"])
    encoded = XML.encoder(columns, None).encode(rows)
    assert encoded.values == [None, b"<Value><c><a>1</a></c></Value>"]
    assert [(bad.row, bad.message) for bad in encoded.bad] == [
        (0, "'a><b' is no name of an XML element")
    ]


def test_a_character_that_xml_does_not_have():
    rows = pa.table({"a": ["\x01", "b"]})
    encoded = XML.encoder([Column("a", "VARCHAR")], None).encode(rows)
    assert encoded.values == [None, b"<Value><a>b</a></Value>"]
    assert [bad.row for bad in encoded.bad] == [0]
