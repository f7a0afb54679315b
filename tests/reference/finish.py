"""Finished rows and the outputs that take them."""

from tests.reference.beside import headers_of
from tests.reference.chain import OracleChain
from tests.reference.conditions import SqlFailure, Values, passes
from tests.reference.pipeline import Write
from tests.reference.records import Emitted
from tests.reference.rows import Row


class NotTaken(Exception):
    """A row that an output cannot take; the text is the phase of the dead letter."""


def finish(chain: OracleChain, row: Row) -> tuple[tuple[int, Emitted], ...]:
    """Return what the queries make of a row whose WHERE it fulfils, with their place in a union.

    Nothing: it was filtered.

    Raises:
        NotTaken: One of them cannot take it, so none does.
    """
    return tuple(
        (write.branch, _taken(chain, write, row, values))
        for write in chain.writes
        for values in write.unnested(row.values)
        if passes(chain.rest_where(write), values)
    )


def _taken(chain: OracleChain, write: Write, row: Row, values: Values) -> Emitted:
    try:
        value = {output.name: output.of(values) for output in write.select}
    except SqlFailure as failure:
        raise NotTaken("sql") from failure
    key, value = write.keyed(value, values)
    if key is None and write.key is not None and not write.groups:
        raise NotTaken("encode")
    members = [each.ts for each in row.members.values() if each] if chain.latest else []
    time = max([row.fact.ts, *members])
    is_null = row.fact.record.is_null and write in chain.copies
    return Emitted(
        topic=write.topic,
        key=key,
        value=None if is_null else value,
        timestamp=time,
        headers=headers_of(write.headers, values),
    )
