"""Statements over the rows of batches: what can be said of them before anything runs."""

import re
from collections.abc import Iterator

import duckdb

from kaflow_engine.errors import ModelError
from kaflow_engine.model.outputs.output_specs import Write
from kaflow_engine.model.outputs.sink_specs import CommandSpec
from kaflow_engine.model.specs import PipelineSpec

_WRITING = ("INSERT", "UPDATE", "DELETE", "MERGE_INTO", "COPY", "CREATE", "DROP")
_HINTS = {
    "TRANSACTION": "remove it: the statements of a batch are one transaction",
    "SELECT": "write INSERT, MERGE, UPDATE, DELETE or COPY: a SELECT writes nothing",
}
_SET_UP = "write it in 'setup' of the connection, in the configuration"


def wrong_statements(spec: PipelineSpec, write: Write, sink: CommandSpec) -> Iterator[ModelError]:
    """Yield an error for SQL that is none, statements that do not belong here, and a ledger that
    two outputs share."""
    at = spec.place(*write.at, "sql")
    try:
        statements = duckdb.extract_statements(sink.sql.replace("{batch}", "1"))
    except duckdb.Error as error:
        yield ModelError(f"'sql' is no SQL of DuckDB: {_said(error)}", at)
        return
    for statement in statements:
        kind = statement.type.name
        if kind not in _WRITING:
            hint = _HINTS.get(kind, _SET_UP)
            said = f"no statement for the rows of a batch: {_shown(statement)}"
            yield ModelError(said, at, hint)
    if not re.search(r"\bbatch\b", sink.sql, re.IGNORECASE):
        hint = "read the table batch, as in INSERT INTO shop.orders SELECT id, amount FROM batch"
        yield ModelError("'sql' does not read the rows: they are in the table 'batch'", at, hint)
    for other in spec.writes:
        if other.at < write.at and isinstance(other.sink, CommandSpec):
            if sink.ledger is not None and other.sink.ledger == sink.ledger:
                yield ModelError(
                    f"ledger '{sink.ledger}' is that of another output, at {spec.place(*other.at)}",
                    spec.place(*write.at, "ledger"),
                    "give it a table of its own: it says which batch an output has",
                )


def without_operation(spec: PipelineSpec, write: Write, sink: CommandSpec) -> Iterator[ModelError]:
    """Yield an error for statements that would write rows which go as rows that stay."""
    if not re.search(r"\b_op\b", sink.sql, re.IGNORECASE):
        yield ModelError(
            "'sql' does not look at '_op', and rows of this query change and go",
            spec.place(*write.at, "sql"),
            "take rows WHERE _op = 'upsert', and delete those of _key WHERE _op = 'delete'",
        )


def _shown(statement: duckdb.Statement) -> str:
    try:
        text = " ".join(statement.query.split())
    except IndexError:  # DuckDB makes several of some statements, and loses the text of all but one
        text = ""
    if not text:
        return f"a {statement.type.name}"
    return text if len(text) <= 60 else f"{text[:57]}..."


def _said(error: duckdb.Error) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = re.sub(r"^\w+ Error: ", "", lines[0])
    line = next((found[1] for each in lines if (found := re.match(r"LINE (\d+):", each))), None)
    return f"{text}, in line {line} of it" if line else text
