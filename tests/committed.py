"""What a topic holds for readers of committed records, once the broker has settled it."""

import time

import pyarrow as pa

from kaflow_engine.connectors.kafka.admin import offsets, require
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.read import read_all

_MARKERS_S = 5.0


def read_committed(kafka: KafkaSettings, topic: str) -> pa.Table:
    """Return the records of a topic (RECORDS).

    A broker answers a commit before it has written down that the transaction ended. Where one stays
    open, as that of a process that was killed, records before it are returned.
    """
    partitions = require(kafka, [topic])

    def ends(committed: bool) -> object:
        return offsets(kafka, partitions, "latest", committed=committed)

    until = time.monotonic() + _MARKERS_S
    while ends(True) != ends(False) and time.monotonic() < until:
        time.sleep(0.02)
    return read_all(kafka, topic)
