"""What a topic of rows has, as a reader of committed records finds it."""

import time
from collections.abc import Iterator

import pyarrow as pa

from kaflow_engine.connectors.kafka.admin import offsets, require
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.read import read_ranges

_CHUNK = 200_000
"""Offsets that are read at once."""
_MARKERS_S = 5.0
_TIMEOUT_MS = 60_000


def rows_of(kafka: KafkaSettings, topic: str) -> Iterator[pa.Table]:
    """Yield the records of a topic (schema RECORDS), partition by partition."""
    known = require(kafka, [topic])
    starts, ends = offsets(kafka, known, "earliest"), offsets(kafka, known, "latest")
    until = time.monotonic() + _MARKERS_S
    while ends != offsets(kafka, known, "latest", committed=False) and time.monotonic() < until:
        time.sleep(0.02)  # until the broker has written down that the last transaction ended
        ends = offsets(kafka, known, "latest")
    for partition, end in ends[topic].items():
        for start in range(starts[topic][partition], end, _CHUNK):
            stop = min(start + _CHUNK, end)
            yield read_ranges(kafka, topic, {partition: start}, {partition: stop}, _TIMEOUT_MS)
