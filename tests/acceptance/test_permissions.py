"""A run is refused with all permissions that its user lacks, before it reads a record."""
# pyright: basic

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from kaflow_engine.cli.main import kaflow
from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import KafkaSettings, open_admin
from kaflow_engine.connectors.kafka.permissions import Need, NotPermitted, require_permissions
from kaflow_engine.testing.services.broker import Broker
from kaflow_engine.testing.services.broker_security import Secure
from tests.acceptance.certificates import issue

USER, PASSWORD = "bob", "s3cret-and-long"
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def issued(tmp_path_factory):
    return issue(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def guarded(issued):
    secure = Secure(identity=issued.identity, users={USER: PASSWORD})
    with Broker(secure=secure, properties=AUTHORIZER) as running:
        yield running


@pytest.fixture
def properties(issued):
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": USER,
        "sasl.password": PASSWORD,
        "ssl.ca.location": str(issued.ca),
    }


def allow(broker, topic, *operations):
    """Create a topic of which the user may do so much."""
    create_topic(broker.settings, topic, 1)
    whom = (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, f"User:{USER}", "*")
    rules = [AclBinding(*whom, operation, AclPermissionType.ALLOW) for operation in operations]
    admin = open_admin(broker.settings).api  # the answers die with it
    for answer in admin.create_acls(rules).values() if rules else ():
        answer.result(timeout=30)


READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
ROWS = [
    ((READ,), "Read", True),
    ((AclOperation.ALL,), "Write", True),
    ((READ,), "Write", False),
    ((WRITE,), "Read", False),
    ((DESCRIBE,), "Read", False),
    ((), "Read", False),
]


@pytest.mark.parametrize(("allowed", "needed", "permitted"), ROWS)
def test_what_a_topic_permits(guarded, properties, unique, allowed, needed, permitted):
    allow(guarded, unique, *allowed)
    kafka = KafkaSettings.of([guarded.secured], properties)
    needs = [Need(topic=unique, operation=needed)]
    if permitted:
        require_permissions(kafka, needs)
        return
    with pytest.raises(NotPermitted, match=f"{needed} on topic '{unique}'"):
        require_permissions(kafka, needs)


def test_brokers_that_permit_everything_and_topics_that_do_not_exist(broker, unique):
    create_topic(broker.settings, unique, 1)
    needs = [
        Need(topic=topic, operation=operation)
        for topic in (unique, f"{unique}.none")
        for operation in ("Read", "Write")
    ]
    require_permissions(broker.settings, needs)


def test_a_run_tells_of_all_that_is_not_permitted(guarded, properties, unique, tmp_path):
    allow(guarded, f"{unique}.in", DESCRIBE)
    allow(guarded, f"{unique}.out", READ)
    lines = "\n".join(f"    {name}: {value}" for name, value in properties.items())
    tmp_path.joinpath("kaflow.yaml").write_text(
        f"kafka:\n  brokers: [{guarded.secured}]\n  properties:\n{lines}\n"
    )
    pipeline = tmp_path / "p.yaml"
    pipeline.write_text(
        f"name: {unique}\n"
        f'query: SELECT id FROM "{unique}.in"\n'
        f"output: {{topic: {unique}.out, key: id}}\n"
        f"topics: {{{unique}.in: {{columns: {{id: VARCHAR}}}}}}\n"
    )
    done = CliRunner().invoke(
        kaflow,
        ["run", str(pipeline), "--config", str(tmp_path / "kaflow.yaml")],
        prog_name="kaflow",
    )
    assert done.exit_code == 11, done.output
    own = f"__kaflow.{unique}"
    lacking = [
        ("Read", f"{unique}.in"),
        ("Write", f"{unique}.out"),
        ("Write", f"{unique}.dead_letters"),
        ("Read", own),
        ("Write", own),
    ]
    said = ", ".join(f"{operation} on topic '{topic}'" for operation, topic in lacking)
    command = f"kafka-acls.sh --bootstrap-server {guarded.secured} --add --allow-principal"
    assert done.stderr.endswith(
        f"error: {pipeline}:2: the user of 'kafka.properties' lacks permissions: {said}\n"
        "  hint: an administrator grants them:\n"
        + "".join(
            f"        {command} User:{USER} --operation {operation} --topic {topic}\n"
            for operation, topic in lacking
        )
    ), done.stderr
    assert PASSWORD not in done.output
