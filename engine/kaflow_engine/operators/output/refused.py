"""Rows that a sink refused, such as a database by a constraint: they become dead letters."""

from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa

from kaflow_engine.flow.chains.chain import chains_into
from kaflow_engine.flow.flow import Flow
from kaflow_engine.operators.output.deliver import letters_of
from kaflow_engine.operators.output.row_letters import row_letters
from kaflow_engine.operators.row_errors.bad_record import BadRecord


class Refusal(Protocol):
    """Why a sink refused a row, as sinks say it."""

    @property
    def row(self) -> int:
        """Its place."""
        ...

    @property
    def error(self) -> str:
        """The kind of error."""
        ...

    @property
    def message(self) -> str:
        """The words of the sink."""
        ...


def refused_letters(
    flow: Flow, target: str, rows: pa.Table, refused: Sequence[Refusal]
) -> pa.Table:
    """Return dead letters of phase `sink`, schema OUTPUT: they name the row, and what made it.

    Args:
        flow: What runs.
        target: What the output is called.
        rows: Its rows, schema OUTPUT.
        refused: Which of them, and why.
    """
    sink = next(sink for sink in flow.sinks if sink.target == target)
    chain = chains_into(flow, sink)[0]
    taken = rows.take(pa.array([one.row for one in refused], pa.int64()))
    bad = [
        BadRecord(row=n, phase="sink", error=one.error, message=one.message)
        for n, one in enumerate(refused)
    ]
    names = [_called(target, row) for row in taken.to_pylist()]
    dead = row_letters(flow, chain, bad, names, ts=taken["timestamp"], part=taken["slot"])
    return letters_of(flow, dead)


def _called(target: str, row: dict[str, Any]) -> str:
    key = "" if row["key"] is None else f" '{row['key'].decode(errors='replace')}'"
    known = row["source_offset"] is not None and row["source_offset"] >= 0
    made = f", made of {row['source_partition']}@{row['source_offset']}" if known else ""
    return f"row{key} of output '{target}'{made}"
