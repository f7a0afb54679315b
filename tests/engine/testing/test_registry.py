import json
import urllib.error
import urllib.request

import pytest

from kaflow_engine.testing.services.registry import SchemaRegistry

pytestmark = pytest.mark.services

ONE = {"type": "record", "name": "Value", "fields": [{"name": "a", "type": "long"}]}
TWO = {**ONE, "fields": [*ONE["fields"], {"name": "b", "type": "string"}]}


def register(registry: SchemaRegistry, subject: str, schema: object) -> int:
    request = urllib.request.Request(
        f"{registry.url}/subjects/{subject}/versions",
        data=json.dumps({"schema": json.dumps(schema)}).encode(),
        headers={"Content-Type": "application/vnd.schemaregistry.v1+json"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)["id"]


def test_an_incompatible_schema_is_refused_without_asking_for_it(
    registry: SchemaRegistry, topic_name: str
):
    subject = f"{topic_name}-value"
    first = register(registry, subject, ONE)
    assert register(registry, subject, ONE) == first
    with pytest.raises(urllib.error.HTTPError) as caught:
        register(registry, subject, TWO)
    with caught.value as refusal:
        assert refusal.code == 409
