"""Which fields a registered schema lets be NULL."""

import json

import pytest

from kaflow_engine.formats.contract import format_of

AVRO = json.dumps(
    {
        "type": "record",
        "name": "V",
        "fields": [
            {"name": "Id", "type": "int"},
            {"name": "Note", "type": ["null", "string"]},
            {"name": "last", "type": ["string", "null"]},
            {"name": "either", "type": ["string", "int"]},
            {
                "name": "at",
                "type": {
                    "type": "record",
                    "name": "At",
                    "fields": [
                        {"name": "city", "type": ["null", "string"]},
                        {"name": "zip", "type": "string"},
                    ],
                },
            },
            {"name": "tags", "type": {"type": "array", "items": ["null", "string"]}},
        ],
    }
)
JSON_SCHEMA = json.dumps(
    {
        "type": "object",
        "allOf": [{"properties": {"first": {"type": "string"}}, "required": ["first"]}],
        "properties": {
            "Id": {"type": "integer"},
            "other": {"type": "integer"},
            "listed": {"type": ["string", "null"]},
            "one": {"oneOf": [{"type": "null"}, {"type": "number"}]},
            "named": {"$ref": "#/definitions/text"},
            "maybe": {"$ref": "#/definitions/null"},
            "at": {"type": "object", "properties": {"city": {"type": "string"}}},
            "any": {},
            "true": True,
            "said": {"description": "of any type"},
            "enum": {"enum": ["a", None]},
            "letters": {"enum": ["a", "b"]},
            "typed": {"type": "string", "enum": ["a", None]},
            "const": {"const": None},
            "fixed": {"const": 1},
            "all": {"allOf": [{"type": ["string", "null"]}, {"maxLength": 3}]},
            "both": {"allOf": [{"$ref": "#/definitions/null"}, {"type": "string"}]},
            "some": {"anyOf": [{"type": "string"}, {"$ref": "#/definitions/null"}]},
            "either": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            "circle": {"$ref": "#/definitions/circle"},
            "node": {"$ref": "#/definitions/node"},
        },
        "required": [
            *("Id", "listed", "one", "named", "maybe", "at", "any", "true", "said"),
            *("enum", "letters", "typed", "const", "fixed", "all", "both", "some", "either"),
            *("circle", "node"),
        ],
        "definitions": {
            "text": {"type": "string"},
            "null": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "circle": {"anyOf": [{"$ref": "#/definitions/circle"}, {"type": "string"}]},
            "node": {
                "type": ["object", "null"],
                "properties": {"next": {"$ref": "#/definitions/node"}},
                "required": ["next"],
            },
        },
    }
)
NULLABLE_IN_JSON_SCHEMA = {
    *("other", "listed", "one", "maybe", "at.city", "any", "true", "said"),
    *("enum", "const", "all", "some", "node", "node.next"),
}
PROTOBUF = """
    syntax = "proto3";
    message V {
      int32 Id = 1;
      optional string note = 2;
      At at = 3;
      repeated string tags = 4;
      message At { string zip = 1; optional string city = 2; }
    }
"""


@pytest.mark.parametrize(
    ("form", "schema", "nullable"),
    [
        ("avro", AVRO, {"note", "last", "at.city"}),
        ("json_schema", JSON_SCHEMA, NULLABLE_IN_JSON_SCHEMA),
        ("protobuf", PROTOBUF, {"note", "at", "at.city"}),
        ("json", "", set[str]()),
    ],
)
def test_nullable_fields(form: str, schema: str, nullable: set[str]) -> None:
    assert format_of(form).nullable(schema) == nullable
