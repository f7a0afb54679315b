"""Finished rows and the outputs that take them."""

from tests.reference.conditions import SqlFailure, Values, passes
from tests.reference.pipeline import OraclePipeline, Write
from tests.reference.records import Emitted
from tests.reference.rows import Row


class NotTaken(Exception):
    """A row that an output cannot take; the text is the phase of the dead letter."""


def finish(pipeline: OraclePipeline, row: Row) -> tuple[Emitted, ...]:
    """Return what the outputs make of a row whose WHERE it fulfils; nothing: it was filtered.

    Raises:
        NotTaken: One of them cannot take it, so none does.
    """
    return tuple(
        _taken(write, row, values)
        for write in pipeline.writes
        for values in write.unnested(row.values)
        if passes(pipeline.rest_where(write), values)
    )


def _taken(write: Write, row: Row, values: Values) -> Emitted:
    try:
        value = {output.name: output.term.of(values) for output in write.select}
    except SqlFailure as failure:
        raise NotTaken("sql") from failure
    key, value = write.keyed(value)
    if key is None and write.key is not None:
        raise NotTaken("encode")
    return Emitted(topic=write.topic, key=key, value=value, timestamp=row.fact.ts)
