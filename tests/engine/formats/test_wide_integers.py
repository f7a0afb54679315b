"""Wide integers in Avro and JSON, in and out, in bulk and one by one; in CSV and JSON Schema."""

import io
import json
import os
import random
from collections.abc import Mapping, Sequence

import fastavro
import pyarrow as pa
import pytest

from kaflow_engine.duck.queries import query
from kaflow_engine.duck.wide.integers import BOUNDS
from kaflow_engine.duck.wide.vectors import column_of, numbers_in
from kaflow_engine.formats.avro.schema import columns_of
from kaflow_engine.formats.contract import IdSchema, format_of
from kaflow_engine.formats.decoded import Decoded
from kaflow_engine.model.columns import Column

MANY = int(os.environ.get("KAFLOW_WIDE_CASES", "500"))
DICE = random.Random(7)
LEAST, MOST = BOUNDS["BIGNUM"]
EDGES = [0, 1, -1, 127, 128, -128, -129, 10**38, -(10**38), 2**255 - 1, -(2**255)]
SIGNED = EDGES + [DICE.randint(-(2**255), 2**255 - 1) >> DICE.randrange(255) for _ in range(MANY)]
UNSIGNED = [0, 255, 256, MOST] + [DICE.randint(0, MOST) >> DICE.randrange(255) for _ in range(MANY)]
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 78, "scale": 0}
FIXED = {"type": "fixed", "name": "F", "size": 32}


def _avro(
    kind: object, values: Sequence[object], more: Sequence[object] = ()
) -> tuple[pa.Array, str]:
    """Return framed records, whose bytes are written without what they mean, and their schema."""
    fields = [{"name": "n", "type": ["null", kind]}, *more]
    schema: dict[str, object] = {"type": "record", "name": "R", "fields": fields}
    plain = json.loads(json.dumps(schema).replace("logicalType", "meant"))
    found: list[bytes] = []
    for value in values:
        stream = io.BytesIO(b"")
        fastavro.schemaless_writer(stream, plain, {"n": value})
        found.append(b"\x00\x00\x00\x00\x01" + stream.getvalue())
    return pa.array(found, pa.binary()), json.dumps(schema)


def _read(values: pa.Array, schema: str, kind: str) -> Decoded:
    return format_of("avro").decode(values, [Column("n", kind)], lambda _: schema)


def _short(number: int) -> bytes:
    return number.to_bytes(33, "big", signed=True)


def test_a_decimal_of_78_digits_is_a_bignum() -> None:
    values, schema = _avro(DECIMAL, [*map(_short, SIGNED), None])
    assert columns_of(schema) == (Column("n", "BIGNUM"),)
    found = _read(values, schema, "BIGNUM")
    assert (numbers_in(found.table["n"]), found.bad) == ([*SIGNED, None], ())


@pytest.mark.parametrize(
    ("kind", "numbers", "signed"), [("U256", UNSIGNED, False), ("I256", SIGNED, True)]
)
def test_a_fixed_of_32_bytes_is_what_its_column_says(
    kind: str, numbers: Sequence[int], signed: bool
) -> None:
    values, schema = _avro(FIXED, [each.to_bytes(32, "big", signed=signed) for each in numbers])
    assert columns_of(schema) == (Column("n", "BLOB"),)
    found = _read(values, schema, kind)
    assert (numbers_in(found.table["n"]), found.bad) == (list(numbers), ())


def test_a_value_beyond_the_bounds_of_its_column_is_bad() -> None:
    values, schema = _avro(DECIMAL, [_short(-1), _short(5), (1 << 256).to_bytes(40, "big")])
    found = _read(values, schema, "U256")
    assert numbers_in(found.table["n"]) == [5]
    assert [(bad.row, bad.error, bad.message) for bad in found.bad] == [
        (0, "WrongType", "column 'n': -1 is not a U256"),
        (2, "WrongType", "column 'n': a number of more than 256 bits"),
    ]


def test_a_column_that_is_declared_as_bytes_has_the_bytes_of_a_number() -> None:
    values, schema = _avro(DECIMAL, [b"\x01\x00", None])
    found = _read(values, schema, "BLOB")
    assert (found.table["n"].to_pylist(), found.bad) == ([b"\x01\x00", None], ())


@pytest.mark.parametrize("more", [[], [{"name": "next", "type": ["null", "R"]}]], ids=len)
@pytest.mark.parametrize(
    ("kind", "value", "type_"),
    [
        ({"type": "string", "logicalType": "decimal", "precision": 40}, "12", "VARCHAR"),
        ({"type": "long", "logicalType": "decimal", "precision": 40}, 12, "BIGINT"),
        ({"type": "string", "logicalType": "unsigned"}, "12", "VARCHAR"),
        ({"type": "bytes", "logicalType": "unsigned"}, b"12", "BLOB"),
    ],
)
def test_meanings_that_a_type_does_not_have_are_left_out(
    kind: object, value: object, type_: str, more: list[object]
) -> None:
    values, schema = _avro(kind, [value], more)
    assert columns_of(schema)[0] == Column("n", type_)
    found = _read(values, schema, type_)
    assert (found.table["n"].to_pylist(), found.bad) == ([value], ())


@pytest.mark.parametrize("kind", ["string", "long", "double"])
def test_other_types_are_cast(kind: str) -> None:
    made: Mapping[str, Sequence[object]] = {
        "string": ["0xff", "-1", "7.5"], "long": [255, -1, None], "double": [255.0, -1.0, None],
    }  # fmt: skip
    values, schema = _avro(kind, made[kind])
    found = _read(values, schema, "U256")
    assert numbers_in(found.table["n"])[0] == 255
    assert found.bad[0].row == 1


def test_what_is_written_reads_back() -> None:
    columns = [Column("n", "BIGNUM"), Column("l", "BIGNUM[]")]
    form = format_of("avro")
    schema = form.schema_of(columns, "R")
    assert schema is not None
    every = [*SIGNED, *UNSIGNED, None]
    table = query("SELECT n, [n, NULL] AS l FROM rows", pa.table({"n": column_of(every)}))
    encoded = form.encoder(columns, IdSchema(1, schema)).encode(table)
    assert encoded.bad == ()
    found = form.decode(encoded.array, columns, lambda _: schema)
    assert (numbers_in(found.table["n"]), found.bad) == (every, ())
    texts = query("SELECT CAST(l[1] AS VARCHAR) AS t FROM rows", found.table)["t"].to_pylist()
    assert texts == [None if each is None else str(each) for each in every]


@pytest.mark.parametrize(
    ("kind", "number", "fits"),
    [
        ({**DECIMAL, "precision": 40}, 10**40 - 1, True),
        ({**DECIMAL, "precision": 40}, 10**40, False),
        ({**DECIMAL, **FIXED, "precision": 76}, -(10**76) + 1, True),
        ({**DECIMAL, **FIXED, "precision": 76}, -(10**76), False),
        ({**DECIMAL, "scale": 2, "precision": 80}, MOST, True),
    ],
)
def test_a_schema_may_hold_fewer_digits(kind: object, number: int, fits: bool) -> None:
    schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": "n", "type": kind}]})
    form = format_of("avro").encoder([Column("n", "BIGNUM")], IdSchema(1, schema))
    encoded = form.encode(pa.table({"n": column_of([5, number])}))
    assert [bad.row for bad in encoded.bad] == ([] if fits else [1])
    read = _read(encoded.array.slice(0, 1), schema, "VARCHAR")
    assert read.bad == ()


JSON = (
    [(f'"{n}"', n) for n in SIGNED[:40]]
    + [(str(n), n) for n in SIGNED]
    + [(f'"{n:#x}"', n) for n in UNSIGNED]
    + [('"0XfF"', 255), ('"-0x10"', -16), ("5.0", 5), ("1e3", 1000), ("null", None), ('" 7 "', 7)]
    + [('"1_000"', 1000), ('"7."', 7)]
)
NO_JSON = ["1.5", '"1.5"', '"x"', '""', "true", "{}", f'"{MOST + 1}"', str(LEAST - 1), '"0x"',
           '"_1"', '"\uff11"', '"0x1' + "0" * 64 + '"']  # fmt: skip


@pytest.mark.parametrize("times", [1, 300], ids=["one by one", "in bulk"])
def test_json_is_read_exactly(times: int) -> None:
    given = JSON * (1 if times == 1 else 2)
    few = given[-60:] if times == 1 else given
    texts = [text for text, _ in few] + NO_JSON
    values = pa.array([f'{{"n":{text}}}'.encode() for text in texts], pa.binary())
    found = format_of("json").decode(values, [Column("n", "BIGNUM")], lambda _: "")
    assert numbers_in(found.table["n"]) == [number for _, number in few]
    assert [bad.row - len(few) for bad in found.bad] == list(range(len(NO_JSON)))
    assert found.bad[1].message == """column 'n': "1.5" is not a BIGNUM"""


def test_csv_and_json_schema_carry_texts() -> None:
    columns = [Column("n", "U256")]
    lines = pa.array([b"0xff", b"12", b"-1"], pa.binary())
    found = format_of("csv").decode(lines, columns, lambda _: "")
    assert (numbers_in(found.table["n"]), [bad.row for bad in found.bad]) == ([255, 12], [2])
    schema = format_of("json_schema").schema_of([Column("n", "BIGNUM")], "R")
    assert schema is not None
    assert json.loads(schema)["properties"]["n"]["oneOf"][1] == {"type": "string"}
