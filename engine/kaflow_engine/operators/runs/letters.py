"""Dead letters about runs: of rows that fail alone, and of runs that fail as a whole."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import pyarrow as pa

from kaflow_engine.flow.chains.chain import Chain, chain_of
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import entries_of, source_of
from kaflow_engine.flow.timed import Runs
from kaflow_engine.operators.output.row_letters import row_letters
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.row_errors.dead_letters import letter_side, refusal, why
from kaflow_engine.operators.rows.partitioning import first_parts
from kaflow_engine.operators.rows.reports import exchange_rows, report_rows
from kaflow_engine.operators.rows.schemas import DEAD, EXCHANGE, LETTERS, NO_RECORD
from kaflow_engine.operators.runs.calculate import Made
from kaflow_engine.operators.runs.kept_rows import KeptRow, RunRows


class OfRun(Protocol):
    """A run, as far as dead letters tell it."""

    @property
    def key(self) -> bytes:
        """Of its writer."""
        ...

    @property
    def rows(self) -> RunRows:
        """Its rows, in their order."""
        ...


def row_failures(flow: Flow, runs: Runs, made: Sequence[tuple[OfRun, Made]]) -> pa.Table:
    """Return dead letters of rows on which the SQL failed, one for each record; schema EXCHANGE.

    Raises:
        RecordRefused: The topic of the record says `on_error: fail`.
    """
    chains = [chain_of(flow, entry) for entry in entries_of(flow, runs)]
    topics = [source_of(flow, chain.driving) for chain in chains]
    failed: dict[tuple[int, int, int], tuple[KeptRow, BadRecord, bytes]] = {}
    others: list[tuple[KeptRow, BadRecord, bytes]] = []
    for run, each in made:
        for place, error, message in each.bad:
            row = run.rows.at(place)
            bad = BadRecord(row=0, phase="sql", error=error, message=message)
            _, _, part, offset = row.origin
            topic = topics[row.branch]
            # one that came while the topic had another `on_error` has no bytes
            if part == NO_RECORD or (topic.on_error == "dead_letter" and row.raw is None):
                others.append((row, bad, run.key))
                continue
            if topic.on_error == "fail":
                raise refusal(topic, part, offset, bad)
            failed.setdefault((row.branch, part, offset), (row, bad, run.key))
    report = report_rows([{"counters": {"failed_results": len(failed) + len(others)}}])
    tables = [report]
    for branch, (chain, topic) in enumerate(zip(chains, topics, strict=True)):
        own = [each for (of, _, _), each in failed.items() if of == branch]
        if own and topic.on_error == "dead_letter":
            tables.append(_of_records(flow, chain, own))
    if others:
        tables.append(
            row_letters(
                flow,
                chain_of(flow, runs),
                [bad for _, bad, _ in others],
                ["a row of a run"] * len(others),
                ts=pa.array([row.ts for row, _, _ in others], pa.int64()),
                part=_parts(flow, [key for _, _, key in others]),
            )
        )
    return pa.concat_tables(tables)


def _of_records(
    flow: Flow, chain: Chain, failed: Sequence[tuple[KeptRow, BadRecord, bytes]]
) -> pa.Table:
    rows = [row for row, _, _ in failed]
    return exchange_rows(
        len(rows),
        target=LETTERS,
        part=_parts(flow, [key for _, _, key in failed]),
        kind=DEAD,
        side=letter_side(flow, chain),
        t_phase=1,
        t_topic=source_of(flow, chain.driving).index,
        t_part=pa.array([row.origin[2] for row in rows], pa.int64()),
        t_off=pa.array([row.origin[3] for row in rows], pa.int64()),
        ts=pa.array([row.ts for row in rows], pa.int64()),
        raw=pa.array([row.raw for row in rows], pa.string()),
        payload=pa.array([why(bad) for _, bad, _ in failed], pa.string()),
    )


def result_letters(flow: Flow, chain: Chain, failed: Sequence[tuple[OfRun, BadRecord]]) -> pa.Table:
    """Return dead letters about what runs select, at most one for each; schema EXCHANGE."""
    once: dict[int, tuple[OfRun, BadRecord]] = {}
    for run, bad in failed:
        once.setdefault(id(run), (run, bad))
    some = list(once.values())
    if not some:
        return EXCHANGE.empty_table()
    letters = row_letters(
        flow,
        chain,
        [replace(bad, phase="result") for _, bad in some],
        [f"a run of {len(run.rows)} rows" for run, _ in some],
        ts=pa.array([run.rows.newest for run, _ in some], pa.int64()),
        part=_parts(flow, [run.key for run, _ in some]),
    )
    report = report_rows([{"counters": {"failed_results": len(some)}}])
    return pa.concat_tables([letters, report])


def _parts(flow: Flow, keys: Sequence[bytes]) -> pa.Array:
    return pa.array(first_parts(pa.array(keys, pa.binary()), flow.partitions))
