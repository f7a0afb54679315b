"""Protobuf schemas and values as the tests make them."""

import pyarrow as pa

from kaflow_engine.formats.contract import format_of
from kaflow_engine.formats.protobuf.read import class_of, columns_of

PROTOBUF = format_of("protobuf")

SCHEMA = """
syntax = "proto3";
package shop;

import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";

message Order {
  enum State { UNKNOWN = 0; PAID = 1; }
  message Item { string sku = 1; optional int32 count = 2; }
  double d = 1;
  float f = 2;
  int32 i = 3;
  int64 n = 4;
  uint32 ui = 5;
  uint64 un = 6;
  sint32 si = 7;
  sint64 sn = 8;
  fixed32 fi = 9;
  fixed64 fn = 10;
  sfixed32 sfi = 11;
  sfixed64 sfn = 12;
  bool bo = 13;
  string s = 14;
  bytes b = 15;
  State state = 16;
  optional int64 maybe = 17;
  oneof pick { string left = 18; int64 right = 19; }
  google.protobuf.Timestamp at = 20;
  google.protobuf.Int64Value wrapped = 21;
  google.protobuf.StringValue text = 22;
  Item item = 23;
  repeated Item items = 24;
  repeated int64 numbers = 25;
  repeated google.protobuf.Timestamp times = 26;
  map<string, int64> counts = 27;
  map<int32, Item> by_id = 28;
  Order before = 29;
  google.protobuf.Struct any = 30;
  optional State maybe_state = 31;
  message Nothing {}
  Nothing nothing = 32;
}

message Other { string name = 1; message Inner { int64 x = 1; } }
"""

TYPES = {
    "d": "DOUBLE",
    "f": "FLOAT",
    "i": "INTEGER",
    "n": "BIGINT",
    "ui": "UINTEGER",
    "un": "UBIGINT",
    "si": "INTEGER",
    "sn": "BIGINT",
    "fi": "UINTEGER",
    "fn": "UBIGINT",
    "sfi": "INTEGER",
    "sfn": "BIGINT",
    "bo": "BOOLEAN",
    "s": "VARCHAR",
    "b": "BLOB",
    "state": "VARCHAR",
    "maybe": "BIGINT",
    "left": "VARCHAR",
    "right": "BIGINT",
    "at": "TIMESTAMP",
    "wrapped": "BIGINT",
    "text": "VARCHAR",
    "item": 'STRUCT("sku" VARCHAR, "count" INTEGER)',
    "items": 'STRUCT("sku" VARCHAR, "count" INTEGER)[]',
    "numbers": "BIGINT[]",
    "times": "TIMESTAMP[]",
    "counts": "MAP(VARCHAR, BIGINT)",
    "by_id": 'MAP(INTEGER, STRUCT("sku" VARCHAR, "count" INTEGER))',
    "before": "VARCHAR",
    "any": "VARCHAR",
    "maybe_state": "VARCHAR",
    "nothing": "VARCHAR",
}
"""Column → its type."""

UNSET = {
    **dict.fromkeys(("i", "n", "ui", "un", "si", "sn", "fi", "fn", "sfi", "sfn"), 0),
    **{"d": 0.0, "f": 0.0, "bo": False, "s": "", "b": b"", "state": "UNKNOWN"},
    **{name: [] for name in ("items", "numbers", "times", "counts", "by_id")},
}
"""What a field is that was not written; the others are NULL."""


def frame(payload, schema_id=1, indexes=b"\0"):
    return b"\0" + schema_id.to_bytes(4, "big") + indexes + payload


def message(schema=SCHEMA, path=(0,), **fields):
    """Return the bytes of a message, written by Protobuf's own library."""
    return class_of(schema, path)(**fields).SerializeToString()


def decode(values, schema=SCHEMA, columns=None):
    asked = columns_of(schema) if columns is None else columns
    return PROTOBUF.decode(pa.array(values, pa.binary()), asked, lambda _: schema)
