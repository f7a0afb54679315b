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
        },
        "required": ["Id", "listed", "one", "named", "maybe", "at"],
        "definitions": {
            "text": {"type": "string"},
            "null": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
    }
)
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
        ("json_schema", JSON_SCHEMA, {"other", "listed", "one", "maybe", "at.city"}),
        ("protobuf", PROTOBUF, {"note", "at", "at.city"}),
        ("json", "", set[str]()),
    ],
)
def test_nullable_fields(form: str, schema: str, nullable: set[str]) -> None:
    assert format_of(form).nullable(schema) == nullable
