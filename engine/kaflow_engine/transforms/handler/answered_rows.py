"""The rows that answers make, typed as their author declares them."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import literal
from kaflow_engine.flow.transforms import Transform
from kaflow_engine.formats.contract import format_of, no_schema
from kaflow_engine.formats.pick import either
from kaflow_engine.operators.transform.contract import Failure, Transformed


def answered_rows(rows: pa.Table, answers: pa.Table, transform: Transform) -> Transformed:
    """Return the rows that answers make; one that does not fit fails alone.

    A column that is not declared, and that an answer does not have, is that of the row.

    Args:
        rows: What was asked about.
        answers: What was said of each: schema KEPT.
        transform: Which columns there are to be.
    """
    texts = answers["answer"].combine_chunks()
    given = pc.indices_nonzero(texts.is_valid()).cast(pa.int64())
    values = texts.take(given)
    decoded = format_of("json").decode(values.cast(pa.binary()), transform.results, no_schema)
    failures = [
        Failure(row=row, error=said["error"], message=said["message"])
        for row, said in enumerate(answers.to_pylist())
        if said["answer"] is None
    ]
    failures += [
        Failure(
            row=given[each.row].as_py(), error=each.error, message=f"the answer: {each.message}"
        )
        for each in decoded.bad
    ]
    origin = given.take(decoded.good)
    own = {column.name: column.type for column in transform.columns}
    names = [c.name for c in transform.results if own.get(c.name) == c.type]
    return Transformed(
        rows=_completed(decoded.table, rows.take(origin), values.take(decoded.good), names),
        origin=origin,
        failures=tuple(sorted(failures, key=lambda each: each.row)),
    )


def _completed(found: pa.Table, rows: pa.Table, texts: pa.Array, names: Sequence[str]) -> pa.Table:
    """Return rows with their own values in columns that their answers do not have."""
    if not names or not found.num_rows:
        return found
    keys = [f"list_contains(found, {literal(name)}) AS c{i}" for i, name in enumerate(names)]
    sql = f"SELECT {', '.join(keys)} FROM (SELECT json_keys(text) AS found FROM rows)"
    has = query(sql, pa.table({"text": texts}))
    for number, name in enumerate(names):
        mask = has[f"c{number}"]
        if not pc.all(mask).as_py():
            at = found.column_names.index(name)
            kind = found.schema.field(at).type
            values = either(mask, found[name], rows[name].cast(kind))
            found = found.set_column(at, name, values)
    return found
