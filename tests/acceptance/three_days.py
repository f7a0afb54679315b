"""Topics that hold three days of records, and pipelines over them."""
# pyright: basic

from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.flow.flow import Backfill
from kaflow_engine.flow.graph import topic_sinks
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec

MINUTE, DAY = 60_000, 86_400_000
START = 1_767_225_600_000
DAYS = 3
SECOND = Backfill(start=START + DAY, end=START + 2 * DAY)
PARTITIONS = 2
CLICKS = {"columns": {"id": "BIGINT", "u": "VARCHAR"}}
SIDES = {
    "dimension": (
        'SELECT c.id, c.u, s.v FROM "{p}.clicks" c LEFT JOIN "{p}.users" s ON c.u = s.u',
        {"dimensions": ["{p}.users"]},
    ),
    "event": (
        'SELECT c.id, c.u, s.v FROM "{p}.clicks" c LEFT JOIN "{p}.views" s ON c.u = s.u',
        {"events": {"default_ttl": "20m"}},
    ),
    "inner": (
        'SELECT c.id, c.u, s.v FROM "{p}.clicks" c JOIN "{p}.views" s ON c.u = s.u',
        {"events": {"default_ttl": "20m"}},
    ),
    "alone": ("SELECT c.id, c.u, '' AS v FROM \"{p}.clicks\" c WHERE c.id % 3 > 0", {}),
}


def load(broker, prefix):
    """Send three days of clicks, of views around them, and users, some of whom come late.

    Fails where the topics exist: modules of one test process share a broker, and records would
    be there twice.
    """
    producer = open_producer(broker.settings).api

    def send(topic, key, value, at):
        partition = sum(key.encode()) % PARTITIONS
        producer.produce(f"{prefix}.{topic}", value, key, partition, timestamp=at)

    for topic in ("clicks", "views", "users"):
        broker.create_topic(f"{prefix}.{topic}", PARTITIONS, config={"retention.ms": "-1"})
    records = [
        ("clicks", "u0", b"broken", START + DAY + MINUTE),
        ("clicks", "u0", b"broken too", START + 2 * DAY + MINUTE),
    ]
    for n in range(DAYS * 144):
        at, user = START + n * 10 * MINUTE + 17, f"u{n % 7}"
        records.append(("clicks", user, b'{"id":%d,"u":"%s"}' % (n, user.encode()), at))
        if n % 2:
            when = at + (n % 7 - 3) * 9 * MINUTE  # some too far away
            records.append(("views", user, b'{"u":"%s","v":"w%d"}' % (user.encode(), n), when))
    for n in range(5):
        records.append(("users", f"u{n}", b'{"u":"u%d","v":"x%d"}' % (n, n), START + n * DAY))
    for record in sorted(records, key=lambda record: record[3]):
        send(*record)
    assert producer.flush(30) == 0


def config_for(broker, path, **more):
    """A configuration with a state of its own."""
    return Config.model_validate(
        {
            "kafka": {"brokers": broker.bootstrap},
            "state": {"rocksdb": {"path": str(path)}},
            "spark": {"master": "local[2]"},
            **more,
        }
    )


def topic_of(plan):
    """Return the topic of a plan that writes one."""
    (sink,) = topic_sinks(plan)
    return sink.topic


def spec_of(side, prefix, output="rows", more="", to=None):
    """A pipeline that joins clicks with one side."""
    query, state = SIDES[side]
    columns = {"columns": {"u": "VARCHAR", "v": "VARCHAR"}}
    return PipelineSpec.model_validate(
        {
            "name": f"{side}_{output}",
            "query": query.format(p=prefix) + more,
            "output": {"topic": f"{prefix}.{side}.{output}", "key": "u"} if to is None else to,
            "state": {
                name: [each.format(p=prefix) for each in value] if name == "dimensions" else value
                for name, value in state.items()
            },
            "topics": {
                f"{prefix}.{topic}": CLICKS if topic == "clicks" else columns
                for topic in ("clicks", "views", "users")
                if f".{topic}" in query
            },
        }
    )
