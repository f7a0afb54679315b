"""A batch that no run finishes is cut again, unless a part of it was delivered."""
# pyright: basic

import json
from dataclasses import replace

import pytest

from kaflow_engine.connectors.kafka.run_log.control import ControlTopic
from kaflow_engine.runtime.source.offsets import size_of
from tests.acceptance.crash_pipeline import create_outputs, delivered, load_topics, log_of

pytestmark = pytest.mark.kafka

COUNT = 400


@pytest.fixture(scope="module")
def topics(crash_broker):
    load_topics(crash_broker.settings, "more", COUNT)


def sizes(log):
    numbers = range(1, log.next_number() + (log.open_batch() is not None))
    return [size_of(log.load_batch(number).ranges) for number in numbers]


def numbers(found):
    rows = [json.loads(value)["n"] for values in found.rows.values() for value in values]
    return sorted(map(int, rows))


@pytest.mark.parametrize(
    ("point", "checkpoints", "cut"),
    [
        ("mapped", False, [99, 301]),
        ("mapped", True, [99, 301]),
        ("piece_committed", False, [400]),
    ],
)
def test_a_batch_that_no_run_finishes(
    crash_broker, forks, order, bucket, topics, tmp_path, point, checkpoints, cut
):
    name = f"recut-{point}-{checkpoints}"
    create_outputs(crash_broker.settings, name)
    mine = replace(
        order,
        name=name,
        inputs="more",
        pipeline="copy",
        path=str(tmp_path),
        most=1_000,
        piece=1_000,
        bucket=bucket.endpoint if checkpoints else "",
    )
    for _ in range(2):
        (end,) = forks.run([replace(mine, crash_at=f"{point}:1")])
        assert (end.how, end.said) == ("killed", "")
        assert sizes(log_of(tmp_path, name)) == [COUNT]
    (end,) = forks.run([mine])
    assert (end.how, end.said) == ("ended", "")
    log = log_of(tmp_path, name)
    assert sizes(log) == cut
    found = delivered(crash_broker.settings, name, log)
    assert numbers(found) == [n for n in range(COUNT) if n % 40 != 17]
    assert len(found.letters) == COUNT // 40
    kept = ControlTopic(crash_broker.settings, name)._view().batches
    held = {number: record["ranges"] for (_, _, number), record in kept.items()}
    assert set(held) == (set(range(1, len(cut) + 1)) if checkpoints else set())
    for number, ranges in held.items():
        logged = log.load_batch(number).ranges
        assert ranges == {t: {str(p): list(r) for p, r in ps.items()} for t, ps in logged.items()}
