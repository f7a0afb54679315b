"""The ledger: what became of all rows of a driving record, where they parted on the way.

Each join notes what happened to rows and how many wait. Rows that are sent because their time was
up count only if no other row of their driving record was emitted or filtered.
"""

import json
import struct
from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.queries import cursor
from kaflow_engine.flow.chains.chain import Chain, chain_of
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import source_of, taker_of, target_of
from kaflow_engine.flow.operators import Gathers, Ledger
from kaflow_engine.flow.sinks import TopicSink
from kaflow_engine.flow.sources import TopicParams
from kaflow_engine.operators.keyed_state import StepState, place_suffix
from kaflow_engine.operators.outcomes.outcomes import (
    EMITTED,
    FILTERED,
    FORCED_SHIFT,
    class_sql,
    count_changes,
)
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.row_errors.dead_letters import refusal
from kaflow_engine.operators.rows.partitioning import (
    SHARDS,
    output_parts,
    own_parts,
    parts_of,
    record_part,
)
from kaflow_engine.operators.rows.reports import due_report, report_rows
from kaflow_engine.operators.rows.schemas import DEAD, EXCHANGE, LETTERS, NOTE, READY
from kaflow_engine.operators.rows.task import BatchContext, Task
from kaflow_engine.state.keys import entry_key

_ACCOUNT = struct.Struct(">qqq")
_SIDE = 0


def run_ledger(
    flow: Flow, ledger: Ledger, batch: BatchContext, rows: pa.Table, task: Task
) -> pa.Table:
    """Settle the driving records whose rows were noted; schema EXCHANGE in and out."""
    mine = pc.equal(rows["target"], target_of(flow, ledger))
    here = rows.filter(mine)
    found = [EXCHANGE.empty_table(), rows.filter(pc.invert(mine))]
    chain = chain_of(flow, ledger)
    number, horizon = chain.number, batch.horizon(chain.number)
    state = StepState(task, ledger.state, flow.partitions)
    counters: Counter[str] = Counter()
    if here.num_rows:
        accounts = _accounts(state, here)
        found.append(_settle(flow, chain, horizon, here, accounts, state, counters))
    if batch.may_be_due(number):
        for due in state.due(horizon):
            state.remove([entry for _, entry in due])
    report = {"counters": dict(counters), "due": due_report(number, state.write())}
    found.append(report_rows([report]))
    return pa.concat_tables(found)


def _accounts(state: StepState, here: pa.Table) -> list[dict[str, Any]]:
    """Read the accounts of all driving records at hand."""
    places = {(row["d_part"], row["d_off"]) for row in here.select(["d_part", "d_off"]).to_pylist()}
    ordered = sorted(places)
    values = state.values([_entry(*place) for place in ordered])
    return [
        {"d_part": place[0], "d_off": place[1], "flags": flags, "waits": waits, "known": known}
        for place, value in zip(ordered, values, strict=True)
        for flags, waits, known in [_read(value)]
    ]


def _settle(
    flow: Flow,
    chain: Chain,
    horizon: int,
    here: pa.Table,
    accounts: list[dict[str, Any]],
    state: StepState,
    counters: Counter[str],
) -> pa.Table:
    with cursor() as con:
        con.register("accounts", pa.Table.from_pylist(accounts))
        con.register("here", here)
        own = (1 << FORCED_SHIFT) - 1
        seen = EMITTED | FILTERED
        con.execute(
            f"""
            CREATE TEMP TABLE a AS
            SELECT *, (was | noted) & {seen} = 0 AS sends,
                   was | noted
                     | CASE WHEN (was | noted) & {seen} = 0 THEN forced ELSE 0 END AS flags
            FROM (SELECT a.d_part, a.d_off, a.known, a.flags AS was, a.waits AS waited,
                         a.waits + coalesce(sum(n.t_off), 0)::BIGINT AS waits,
                         coalesce(bit_or(n.side & {own}), 0) AS noted,
                         coalesce(bit_or(n.side >> {FORCED_SHIFT}), 0) AS forced, max(n.ts) AS ts
                  FROM accounts a LEFT JOIN (SELECT * FROM here WHERE kind = {NOTE}) n
                    ON n.d_part = a.d_part AND n.d_off = a.d_off
                  GROUP BY a.d_part, a.d_off, a.known, a.flags, a.waits)
            """
        )
        old = f"CASE WHEN known THEN {class_sql('was', 'waited')} END"
        changes = con.execute(
            f"SELECT {old} AS old, {class_sql('flags', 'waits')} AS new, count(*) "
            "FROM a GROUP BY ALL"
        ).fetchall()
        count_changes(counters, changes)
        for part, off, flags, waits, ts in con.execute(
            "SELECT d_part, d_off, flags, waits, ts FROM a "
            "WHERE ts IS NOT NULL AND (NOT known OR flags <> was OR waits <> waited)"
        ).fetchall():
            due = ts + chain.driving.ttl
            if due >= horizon:
                state.put(_entry(part, off), _ACCOUNT.pack(flags, waits, ts), due)
        sent = con.execute(
            f"""
            SELECT h.* FROM here h JOIN a ON a.d_part = h.d_part AND a.d_off = h.d_off
            WHERE h.kind IN ({READY}, {DEAD}) AND a.sends
            QUALIFY h.kind = {READY}
              OR row_number() OVER (PARTITION BY h.kind, h.d_part, h.d_off, h.members) = 1
            """
        ).to_arrow_table()
    topic = source_of(flow, chain.driving)
    _refuse(topic, sent)
    return _onward(flow, chain, topic, sent)


def _refuse(topic: TopicParams, sent: pa.Table) -> None:
    """Stop at a row on which the SQL fails, where the topic has `on_error: fail`."""
    failed = sent.filter(pc.and_(pc.equal(sent["kind"], DEAD), pc.is_valid(sent["members"])))
    if topic.on_error == "fail" and failed.num_rows:
        partition, offset = (failed[name][0].as_py() for name in ("d_part", "d_off"))
        why: dict[str, str] = json.loads(failed["payload"][0].as_py())
        raise refusal(topic, partition, offset, BadRecord(row=0, **why))


def _onward(flow: Flow, chain: Chain, topic: TopicParams, sent: pa.Table) -> pa.Table:
    """Address what is sent to those who deliver it."""
    sent = sent.cast(EXCHANGE)
    ready = sent.filter(pc.equal(sent["kind"], READY))
    dead = sent.filter(pc.equal(sent["kind"], DEAD))
    dead_parts = record_part(topic.index, dead["d_part"], flow)
    ends = chain.ends
    nodes = [taker_of(flow, project) for project in ends]
    projects = pa.array([target_of(flow, project) for project in ends])
    places = pc.index_in(ready["side"], projects)
    takers = pa.array([target_of(flow, node) for node in nodes])
    grouped = pa.array([isinstance(node, Gathers) for node in nodes])
    own = pa.array([isinstance(node, TopicSink) and node.takes_bytes for node in nodes])
    of_groups = parts_of(ready["key"], ready["d_part"], flow.partitions)
    of_sinks = pc.if_else(
        own.take(places),
        own_parts(ready, "key", flow.partitions),
        output_parts(ready["key"], flow.partitions),
    )
    parts = pc.if_else(grouped.take(places), of_groups, of_sinks)
    return pa.concat_tables(
        [
            _addressed(ready, takers.take(places), parts),
            _addressed(dead, pa.repeat(LETTERS, dead.num_rows), dead_parts),
        ]
    )


def _addressed(
    rows: pa.Table, targets: pa.Array | pa.ChunkedArray, part: pa.ChunkedArray
) -> pa.Table:
    rows = rows.set_column(0, EXCHANGE.field("target"), targets.cast(pa.int32()))
    return rows.set_column(1, EXCHANGE.field("part"), part.cast(pa.int32()))


def _entry(partition: int, offset: int) -> bytes:
    shard = (partition * 31 + offset) % SHARDS
    return entry_key(bytes((shard,)) + place_suffix(partition, offset), _SIDE)


def read_account(value: bytes) -> tuple[int, int, int]:
    """Return flags, waiting rows and event time of an account."""
    flags, waits, ts = _ACCOUNT.unpack(value)
    return flags, waits, ts


def _read(value: bytes | None) -> tuple[int, int, bool]:
    if value is None:
        return 0, 0, False
    flags, waits, _ = read_account(value)
    return flags, waits, True
