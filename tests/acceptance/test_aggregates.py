"""Groups behind a join, on Spark and Kafka: the same rows and tables, wherever it is killed."""
# pyright: basic

import json
from collections import Counter

import pytest

from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.connectors.kafka.topics import topic_settings
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.kills import peace_or
from tests.acceptance.run_child import killed_at
from tests.acceptance.three_days import CLICKS, DAYS, MINUTE, START, config_for, load

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

CLICKED = range(DAYS * 144)
USERS, KNOWN = 7, 5
HOUR = 60 * MINUTE
EACH = len(CLICKED) // USERS
"""How many clicks the last users have; others have one more, and are no longer in the table."""


@pytest.fixture(scope="module")
def topics(broker):
    load(broker, "grouped")
    return "grouped"


@pytest.fixture
def config(broker, tmp_path):
    return config_for(broker, tmp_path / "state", max_records=150)


def spec_of(name, topics):
    """Count clicks with what is known of users in windows, and those of each user in a table."""
    clicks, known = f'"{topics}.clicks"', f'"{topics}.users"'
    joined = f"SELECT c.id, c.u, s.v FROM {clicks} c LEFT JOIN {known} s ON c.u = s.u"
    hours = "SELECT v, epoch_ms(window_start) AS since, count(*) AS n FROM joined"
    users = "SELECT u, count(*) AS n, sum(id) AS s FROM joined GROUP BY u"
    return PipelineSpec.model_validate(
        {
            "name": name,
            "relations": {"joined": {"query": joined}},
            "outputs": [
                {"query": f"{hours} GROUP BY v, tumble(INTERVAL 1 HOUR)", "topic": f"{name}.hours"},
                {
                    "query": f"{users} HAVING count(*) <= {EACH}",
                    "topic": f"{name}.users",
                    "coalesce": "none",
                },
            ],
            "topics": {
                f"{topics}.clicks": CLICKS,
                f"{topics}.users": {"columns": {"u": "VARCHAR", "v": "VARCHAR"}},
            },
            "state": {"dimensions": [f"{topics}.users"]},
        }
    )


def hours():
    """Return the rows of all windows."""
    found = Counter()
    for n in CLICKED:
        user = n % USERS
        found[f"x{user}" if user < KNOWN else None, START + n // 6 * HOUR] += 1
    return Counter((v, since, n) for (v, since), n in found.items())


PLACES = peace_or([("committed", 3), ("before_commit", 2)], 1)


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_windows_and_tables_are_those_of_one_run(broker, spark, topics, config, unique, place):
    from kaflow_engine.runtime.application import run_pipelines

    spec = spec_of(unique, topics)
    if place is not None:
        point, batch = place
        killed_at(point, batch, spec, config)
    (planned,) = prepare([spec], config)
    run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)

    values = read_all(broker.settings, f"{unique}.hours")["value"].to_pylist()
    rows = [json.loads(value) for value in values]
    closed = max(row["since"] for row in rows)  # how far the watermark of the last batch came
    assert closed >= START + 48 * HOUR
    assert Counter((row["v"], row["since"], row["n"]) for row in rows) == Counter(
        {row: count for row, count in hours().items() if row[1] <= closed}
    )

    changes = read_all(broker.settings, f"{unique}.users")
    by_user: dict[str, list] = {}
    for key, value in zip(changes["key"].to_pylist(), changes["value"].to_pylist(), strict=True):
        by_user.setdefault(key.decode(), []).append(None if value is None else json.loads(value))
    for user in range(USERS):
        kept, made = by_user[f"u{user}"], updates(user)
        assert kept[-1] == made[-1]
        assert kept == [each for each in made if each in kept]  # the broker compacts the topic
    assert topic_settings(broker.settings, f"{unique}.users")["cleanup.policy"] == "compact"
    assert topic_settings(broker.settings, f"{unique}.hours")["cleanup.policy"] != "compact"


def updates(user):
    """Return each update of a user, and the delete where there are too many clicks."""
    clicks = [n for n in CLICKED if n % USERS == user]
    found = [
        {"u": f"u{user}", "n": count, "s": sum(clicks[:count])}
        for count in range(1, min(len(clicks), EACH) + 1)
    ]
    return [*found, None] if len(clicks) > EACH else found
