"""A made-up format, `name=text;name=text`, as someone else would add one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kaflow_engine.errors import SinkError
from kaflow_engine.formats.contract import Evidence, IdSchema, SchemaById, Traits
from kaflow_engine.formats.decoded import BadValue, Decoded, Encoded, schema_of
from kaflow_engine.formats.schema_registry import Registry
from kaflow_engine.model.columns import Column

TARGET = f"{__name__}:PairsFormat"


class PairsFormat:
    """Texts and whole numbers."""

    traits = Traits(title="pairs", value="list of pairs", registered=False, is_json=False)

    def declared(self, columns: tuple[Column, ...] | None) -> tuple[Column, ...] | None:
        return columns

    def columns(self, evidence: Evidence) -> tuple[Column, ...] | None:
        values = evidence.sample()
        names = [pair.partition("=")[0] for pair in values[0].decode().split(";")] if values else []
        return tuple(Column(name, "VARCHAR") for name in names)

    def schema_of(self, columns: Sequence[Column], name: str) -> str | None:
        return None

    def register(self, registry: Registry, subject: str, schema: str) -> int:
        raise SinkError("pairs have no schemas")

    def decode(
        self,
        values: pa.Array | pa.ChunkedArray,
        columns: Sequence[Column],
        schema_by_id: SchemaById,
    ) -> Decoded:
        rows: list[dict[str, Any]] = []
        good: list[int] = []
        bad: list[BadValue] = []
        for number, value in enumerate(values.to_pylist()):
            try:
                pairs = dict(pair.split("=", 1) for pair in value.decode().split(";"))
                rows.append({c.name: _read(pairs.get(c.name), c.type) for c in columns})
                good.append(number)
            except ValueError as error:
                bad.append(BadValue(number, "NoPairs", str(error)))
        table = pa.Table.from_pylist(rows, schema=schema_of(columns))
        return Decoded(table, pa.array(good, pa.int64()), tuple(bad))

    def encoder(self, columns: Sequence[Column], schema: IdSchema | None) -> "PairsEncoder":
        return PairsEncoder(tuple(column.name for column in columns))


@dataclass(frozen=True, slots=True)
class PairsEncoder:
    """Writes rows one by one; a text with a semicolon does not fit."""

    names: tuple[str, ...]

    def sql(self, names: Mapping[str, str]) -> str | None:
        return None

    def encode(self, rows: pa.Table) -> Encoded:
        values: list[bytes | None] = []
        bad: list[BadValue] = []
        for number, row in enumerate(rows.to_pylist()):
            pairs = [f"{name}={row[name]}" for name in self.names if row[name] is not None]
            if any(";" in pair for pair in pairs):
                bad.append(BadValue(number, "CannotEncode", "a semicolon"))
            values.append(None if any(";" in pair for pair in pairs) else ";".join(pairs).encode())
        return Encoded(pa.array(values, pa.binary()), tuple(bad))


def _read(text: str | None, kind: str) -> object:
    return int(text) if text is not None and kind == "BIGINT" else text
