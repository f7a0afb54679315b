"""Answers of outside systems that are kept by the row they are about, so that each is the same
again, in however many tasks a batch runs."""

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier


def row_keys(identities: pa.Table, asked: pa.Array) -> pa.Array:
    """Return what tells each row from all others of its batch, and from itself with other values.

    A row may have other values where records were lost since, and the batch has fewer.

    Args:
        identities: `TransformBatch.identities` of the rows.
        asked: What is asked about each row, as text or bytes.
    """
    rows = identities.append_column("$asked", asked)
    texts = (f"coalesce(CAST({identifier(name)} AS VARCHAR), '-')" for name in rows.column_names)
    found = query(f"SELECT sha256(concat_ws(' ', {', '.join(texts)})) AS key FROM rows", rows)
    return found["key"].combine_chunks()


def own_first(kept: pa.Table, operator: str) -> pa.Table:
    """Return answers, of schema KEPT, with those in front that an operator has asked for.

    A relation may be several operators, for several outputs. What another one was answered is
    taken, so that the system is asked once; but what this one has asked for, because the other one
    was not done yet, stays what it was.
    """
    own = pc.equal(kept["by"], operator)
    return pa.concat_tables([kept.filter(own), kept.filter(pc.invert(own))])
