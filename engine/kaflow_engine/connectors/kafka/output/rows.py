"""The rows of an output topic, decoded from what a pipeline has written there."""

from collections.abc import Sequence

import pyarrow as pa

from kaflow_engine.connectors.kafka.clusters.reached import registry_of
from kaflow_engine.errors import SourceError
from kaflow_engine.formats.contract import format_of, no_schema
from kaflow_engine.formats.decoded import Decoded
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config


def decode_rows(
    config: Config,
    topic: str,
    form: str,
    columns: Sequence[Column],
    values: pa.Array | pa.ChunkedArray,
    cluster: str = "",
) -> Decoded:
    """Decode values of an output topic.

    Args:
        config: Names the schema registry.
        topic: For messages.
        form: The name of a format.
        columns: Of the rows.
        values: binary, none null.
        cluster: Where the topic is.

    Raises:
        SourceError: Schemas are needed, and there is no registry, or it does not answer.
    """
    written, registry = format_of(form), registry_of(config, cluster)
    if registry is not None:
        return written.decode(values, columns, registry.by_id)
    if written.traits.registered:
        what = written.traits.title
        raise SourceError(f"topic '{topic}' is {what}, and no schema registry is configured")
    return written.decode(values, columns, no_schema)
