"""What tests of both producers share: each way to write, a run that writes, and what is read."""

import pytest

from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.delivery.deliver import SinkSettings
from kaflow_engine.connectors.kafka.native.library import library
from kaflow_engine.connectors.kafka.run_log.control import ControlTopic
from tests.committed import read_committed

WAYS = ["python", *(["library"] if library() else [])]
"""The library is built where cargo is there; what no test names a way for is written by it then."""

by_both = pytest.mark.parametrize("way", WAYS, indirect=True)


def start(kafka: KafkaSettings, pipeline: str, exactly_once: bool = True) -> SinkSettings:
    run = ControlTopic(kafka, pipeline).start_run("s1", 1)
    return SinkSettings(
        kafka=kafka,
        pipeline_id=pipeline,
        state_id="s1",
        generation=1,
        sink="out",
        epoch=run.epoch,
        epoch_offset=run.epoch_offset,
        exactly_once=exactly_once,
        delivered=run.delivered_to("out"),
    )


def values(kafka: KafkaSettings, topic: str) -> list[bytes]:
    return sorted(read_committed(kafka, topic).column("value").to_pylist())
