"""Tables of databases and catalogs, and buckets, under the laws of sinks."""

import json
from dataclasses import replace
from pathlib import Path

import psycopg
import pyarrow as pa

from kaflow_engine.connectors.clickhouse.outputs import ClickHouseOutlet
from kaflow_engine.connectors.contract import Output, Owner
from kaflow_engine.connectors.holding import Holding
from kaflow_engine.connectors.postgres.outputs import PostgresOutlet
from kaflow_engine.model.columns import Column
from kaflow_engine.model.outputs.connection_specs import ClickHouseConnection
from kaflow_engine.testing.sink_laws import OURS, Run, rows_of
from tests.acceptance.bucket_here import KEYS, NAME, Store
from tests.clickhouse_shim import ClickHouseShim
from tests.engine.connectors.iceberg_here import Table as IcebergTable
from tests.engine.connectors.iceberg_here import catalog_in
from tests.engine.connectors.subjects_here import FilesSubject


class PostgresSubject:
    last_point = "before_commit"

    def __init__(self, url: str, table: str) -> None:
        self._url = url
        self._output = Output(
            name=f"postgres:test.{table}",
            place=table,
            columns=(Column("n", "BIGINT"),),
            settings={"connection": "test", "table": table, "create": True},
            connection={"url": url},
        )

    def begin(self, owner: Owner = OURS) -> Run:
        outlet, owner = PostgresOutlet(), replace(owner, epoch=1)
        opened = outlet.open(self._output, self.rows([]).schema, owner, None)
        return Run(outlet.task(self._output, owner), opened)

    def rows(self, values: list[int]) -> pa.Table:
        return rows_of(values)

    def visible(self) -> list[int]:
        with psycopg.connect(self._url) as connection:
            asked = f"SELECT n FROM {self._output.place}".encode()
            return [n for (n,) in connection.execute(asked)]

    def holdings(self) -> set[Holding]:
        return set(PostgresOutlet().look(self._output, self.rows([]).schema, OURS))


class ClickHouseSubject:
    last_point = "before_commit"

    def __init__(self, server: ClickHouseShim, table: str, knows: bool) -> None:
        self._server = server
        if not knows:
            server.ask(f"CREATE TABLE {table} (n Int64) ENGINE = MergeTree ORDER BY n")
        self._output = Output(
            name=f"clickhouse:test.{table}",
            place=table,
            columns=(Column("n", "BIGINT"),),
            settings={"connection": "test", "table": table, "create": True},
            delivery="exactly_once" if knows else "at_least_once",
            connection=ClickHouseConnection.model_validate(server.connection).settings,
        )

    def begin(self, owner: Owner = OURS) -> Run:
        outlet, owner = ClickHouseOutlet(), replace(owner, epoch=1)
        opened = outlet.open(self._output, self.rows([]).schema, owner, None)
        return Run(outlet.task(self._output, owner), opened)

    def rows(self, values: list[int]) -> pa.Table:
        return rows_of(values)

    def visible(self) -> list[int]:
        return [int(n) for (n,) in self._server.ask(f"SELECT n FROM {self._output.place}")]

    def holdings(self) -> set[Holding]:
        return set(ClickHouseOutlet().look(self._output, self.rows([]).schema, OURS))


class IcebergSubject:
    last_point = "rows_produced"

    def __init__(self, folder: Path) -> None:
        self._table = IcebergTable(catalog_in(folder), columns=(Column("n", "BIGINT"),))

    def begin(self, owner: Owner = OURS) -> Run:
        return Run(self._table.outlet.task(self._table.output, owner), self._table.begin(owner))

    def rows(self, values: list[int]) -> pa.Table:
        return rows_of(values)

    def visible(self) -> list[int]:
        return [n for (n,) in self._table.rows()]

    def holdings(self) -> set[Holding]:
        return set(self._table.look())


class BucketSubject(FilesSubject):
    """The same in a bucket."""

    def __init__(self, store: Store, name: str) -> None:
        super().__init__(Path())
        folder = f"s3://{NAME}/{name}"
        self._bucket = store.bucket(name)
        self._output = replace(
            self._output,
            settings={"folder": folder, "format": "json"},
            connection={**KEYS, "endpoint": store.endpoint},
        )

    def visible(self) -> list[int]:
        found = [name for name in sorted(self._bucket.sizes("")) if name.endswith(".json")]
        texts = [content[0] for name in found if (content := self._bucket.get(name))]
        return [json.loads(line)["n"] for text in texts for line in text.splitlines()]
