"""Iceberg tables behind the REST protocol, and in a bucket: what other places change."""
# pyright: basic

from dataclasses import replace

import pyarrow as pa
import pytest

from kaflow_engine.connectors.contract import Owner
from kaflow_engine.connectors.iceberg import outputs
from kaflow_engine.connectors.iceberg.errors import IcebergAway, IcebergUnfit
from kaflow_engine.connectors.tables import retries
from kaflow_engine.errors import TakenOver
from kaflow_engine.model.outputs.connection_specs import IcebergConnection
from tests.acceptance.bucket_here import Store
from tests.engine.connectors.iceberg_here import Table
from tests.engine.connectors.typed_output_here import OWNER
from tests.iceberg_rest_shim import TOKEN, rest_catalog

pytestmark = pytest.mark.slow


def in_a_bucket(endpoint, folder):
    return IcebergConnection(
        uri=f"sqlite:///{folder}/catalog.db",
        warehouse="s3://kaflow/lake",
        properties={
            "s3.endpoint": endpoint,
            "s3.access-key-id": "any",
            "s3.secret-access-key": "any",
            "s3.region": "eu-west-1",
        },
    )


@pytest.fixture(params=["rest", "bucket"])
def connection(request, tmp_path):
    if request.param == "rest":
        with rest_catalog(tmp_path) as address:
            yield IcebergConnection(catalog="rest", uri=address, properties={"token": TOKEN})
    else:
        with Store() as store:
            yield in_a_bucket(store.endpoint, tmp_path)


def test_rows_and_changes_are_there_once(connection, monkeypatch):
    monkeypatch.setattr(retries, "PAUSES", (0.0,))
    table = Table(connection)
    sink = table.begin()
    zombie = table.begin()
    table.write(sink, 1, ("a", ["a", "1"]))
    table.write(zombie, 1, ("a", ["a", "1"]))
    with table.loaded() as there:  # another writer comes in between
        without_retries = outputs._without_retries

        def meanwhile(given):
            monkeypatch.setattr(outputs, "_without_retries", without_retries)
            there.append(pa.table({"k": ["x"], "n": pa.array([0], pa.int32())}))
            return without_retries(given)

        monkeypatch.setattr(outputs, "_without_retries", meanwhile)
        table.write(sink, 2, ("b", ["b", "2"]))
    table.write(table.begin(), 2, ("b", ["b", "2"]))
    assert table.rows() == [("a", 1), ("b", 2), ("x", 0)]
    counts = Table(connection, key="k", changes=True, name="sales.counts")
    sink = counts.begin()
    counts.write(sink, 1, ("a", ["a", "1"]), ("b", ["b", "1"]))
    counts.write(sink, 2, ("a", ["a", "2"]), ("b", None))
    counts.write(sink, 2, ("a", ["a", "2"]), ("b", None))
    assert counts.rows() == [("a", 2)]


def test_another_state_and_another_column(connection):
    table, other = Table(connection), Owner(state="t", generation=1)
    sink = table.begin()
    table.write(sink, 1, ("a", ["a", "1"]))
    wider = Table(connection, (*table.sink.columns, replace(table.sink.columns[1], name="m")))
    wider.outlet.hand_over(wider.output, pa.schema([]), other)
    with pytest.raises(TakenOver):
        table.write(sink, 2, ("b", ["b", "2"]))
    wider.write(wider.begin(other), 1, ("b", ["b", "2", "3"]))
    assert wider.rows() == [("a", 1, None), ("b", 2, 3)]
    assert [(each.state, each.batch) for each in wider.look()] == [("t", 1)]


def test_a_bucket_that_is_not_there(tmp_path):
    with Store() as store:
        found = in_a_bucket(store.endpoint, tmp_path)
        with pytest.raises(IcebergUnfit, match="opening the table of output"):
            Table(found.model_copy(update={"warehouse": "s3://another/lake"})).begin()


def test_a_login_that_is_wrong_and_a_server_that_is_not_there(tmp_path):
    with rest_catalog(tmp_path) as address:
        wrong = IcebergConnection(catalog="rest", uri=address, properties={"token": "wrong-one"})
        with pytest.raises(IcebergUnfit, match="who are you") as caught:
            Table(wrong).look()
        assert "wrong-one" not in str(caught.value)
    gone = IcebergConnection(catalog="rest", uri=address, properties={"token": TOKEN})
    with pytest.raises(IcebergAway):
        Table(gone).begin(OWNER)
    assert TOKEN not in repr(Table(gone).output)
