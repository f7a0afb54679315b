"""The rows of an output topic, decoded from what a pipeline has written there."""

from collections.abc import Sequence

import pyarrow as pa

from kaflow_engine.connectors.kafka.topic_schemas import registry_of
from kaflow_engine.errors import SourceError
from kaflow_engine.formats.avro.decode import decode_avro
from kaflow_engine.formats.decoded import Decoded
from kaflow_engine.formats.json.decode import decode_json
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config


def decode_rows(
    config: Config,
    topic: str,
    form: str,
    columns: Sequence[Column],
    values: pa.Array | pa.ChunkedArray,
) -> Decoded:
    """Decode values of an output topic.

    Args:
        config: Names the schema registry.
        topic: For messages.
        form: `json` or `avro`.
        columns: Of the rows.
        values: binary, none null.

    Raises:
        SourceError: It is Avro, and there is no registry, or it does not answer.
    """
    if form != "avro":
        return decode_json(values, columns)
    registry = registry_of(config)
    if registry is None:
        raise SourceError(f"topic '{topic}' is Avro, and no schema registry is configured")
    return decode_avro(values, columns, registry.by_id)
