"""What `kaflow explain` says of tables that are read from databases."""

from kaflow_engine.errors import Location
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.plan.explain.draw import draw
from kaflow_engine.plan.explain.explain import explain

FILE = {
    "name": "p",
    "query": "SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON o.customer = c.id",
    "output": {"topic": "o", "key": "id"},
    "sources": {
        "orders": {
            "type": "clickhouse",
            "connection": "archive",
            "table_name": "shop.orders",
            "where": "amount > 0",
            "columns": {"id": "BIGINT", "customer": "BIGINT"},
        },
        "customers": {
            "type": "postgres",
            "table_name": "customers",
            "page_key": ["tenant", "id"],
            "columns": {"id": "BIGINT", "name": "VARCHAR"},
            "table": True,
            "primary_key": ["id"],
        },
    },
}
CONFIG = {
    "postgres": {"connections": {"default": {"url": "postgresql://u:secret@db/shop"}}},
    "clickhouse": {"connections": {"archive": {"url": "https://u:secret@archive:8443"}}},
}


def test_kind_key_and_guarantee() -> None:
    spec = pipeline_from_mapping(FILE, Location("p.yaml"), {})
    found = explain(spec, Config.model_validate(CONFIG), {})
    text = "\n".join(draw(found))
    for line in (
        "│ reads      clickhouse table shop.orders of connection archive where amount > 0",
        "│ pages      by the sorting key",
        "│ guarantee  each row exactly once, as it was when its page was read; ends with the last",
        "│ time       time when the page of the row was read",
        "│ reads      postgres table customers of connection default",
        "│ pages      by tenant, id",
        "│ guarantee  each row exactly once, as it was when its page was read; ends with the last",
    ):
        assert line in text, text
    assert "secret" not in f"{text} {found.data()}"
