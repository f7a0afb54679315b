"""Refuses a backfill over a range that the live stream may still write."""

from dataclasses import dataclass
from pathlib import Path

from kaflow_engine.connectors.sinks import sink_kind
from kaflow_engine.errors import Location, ModelError, NotSettled, StateError
from kaflow_engine.flow.chains.chain import chains
from kaflow_engine.flow.flow import Backfill, instant
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.operators.rows.table_rows import is_whole, last_over, length_of
from kaflow_engine.runtime.batch.position import load_standing
from kaflow_engine.runtime.batch.settled import settled_until
from kaflow_engine.runtime.planning.plan_codec import plan_of
from kaflow_engine.state.log.batch_log import BatchLog, Offsets
from kaflow_engine.state.log.by_chain import least
from kaflow_engine.state.storage.store import LocalStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What a stream has taken, as its last commit says."""

    offsets: Offsets
    """What it reads next."""
    settled: int | None
    """Event time in epoch milliseconds: of the records before `offsets` that are older, it will
    write no row any more; None: it has read no event yet."""


def taken(directory: Path) -> Taken | None:
    """Return what the stream of a state directory has taken; None if there is no state.

    Raises:
        StateError: The state is damaged.
    """
    log = BatchLog(LocalStore(directory))
    state = log.load_state()
    if state is None:
        return None
    standing = load_standing(log, state)
    if not standing.batch:
        return Taken(offsets=standing.offsets, settled=None)
    batch = log.load_batch(standing.batch)
    plan = plan_of(log.load_plan(batch.plan))
    settled = {
        chain.number: settled_until(plan, chain, batch.watermark, standing)
        for chain in chains(plan)
    }
    return Taken(offsets=standing.offsets, settled=least(settled))


def last_settled(spec: PipelineSpec, config: Config, now: int) -> str:
    """Return the newest partition of a pipeline's table that its stream is done with.

    Of tables whose partitions differ it is one of the longest, which whole ones of the others fill.

    Args:
        spec: The pipeline.
        config: Says where its state is.
        now: Epoch milliseconds; the partition is over by then.

    Raises:
        StateError: There is none, or nothing is known of the stream.
    """
    directory = state_of_stream(config, spec.id)
    found = taken(directory)
    if found is None:
        raise _no_state(spec.name, directory, spec.at)
    if found.settled is None:
        raise StateError(f"the stream of pipeline '{spec.name}' has read no event yet", spec.at)
    tables = [write.output for write in spec.writes if write.output.table is not None]
    longest = max((output.partition for output in tables), key=length_of, default="day")
    return last_over(min(found.settled, now), longest)


def state_of_stream(config: Config, pipeline_id: str) -> Path:
    """Return where the stream of a pipeline has its state."""
    return Path(config.state.rocksdb.path).absolute() / pipeline_id


def require_settled(
    directory: Path, name: str, wanted: Backfill, at: Location | None = None
) -> Taken | None:
    """Return what the stream has taken; None where the backfill is forced, whatever that is.

    Args:
        directory: The state of the stream.
        name: Of the pipeline.
        wanted: The range.
        at: Where the pipeline is written.

    Raises:
        NotSettled: The stream may still write rows of the range.
        StateError: Nothing is known of the stream.
    """
    if wanted.force:
        return None
    found = taken(directory)
    if found is None:
        raise _no_state(name, directory, at)
    if found.settled is not None and found.settled >= wanted.end:
        return found
    until = (
        "it has read no event yet"
        if found.settled is None
        else f"its watermark, less the longest time that a row waits, is {instant(found.settled)}"
    )
    raise NotSettled(
        f"the stream of pipeline '{name}' may still write rows of {wanted}: {until}",
        at,
        "choose an earlier end, or force it and accept that both write",
    )


def check_backfill(spec: PipelineSpec, config: Config, wanted: Backfill) -> None:
    """Refuse a range that cuts a partition of a table, or that the stream may still write to.

    Args:
        spec: The pipeline.
        config: Says where its state is.
        wanted: The range.

    Raises:
        ModelError: The range begins or ends within a partition, or a source has no range to read.
        NotSettled: The stream may still write rows of the range.
        StateError: Nothing is known of the stream.
    """
    for name, source in spec.sources.items():
        raise ModelError(
            f"a backfill reads topics between two times, and '{name}' is a source of type "
            f"{source.type}",
            spec.place("sources", name),
            "write a pipeline with another id and another target, and run it from the first record",
        )
    for write in spec.writes:
        sink = write.sink
        if (
            sink is not None
            and not sink_kind(sink.kind).capabilities(spec.delivery, sink.settings).backfills
        ):
            raise ModelError(
                f"a backfill cannot write to '{write.target}': nothing tells which of its rows the "
                "backfill would replace",
                spec.place(*write.at),
                "write a pipeline with another id and another target, and run it from the first "
                "record",
            )
        table, partition = write.output.table, write.output.partition
        for at in (wanted.start, wanted.end):
            if table is not None and not is_whole(at, partition):
                raise ModelError(
                    f"{instant(at)} is in the middle of a partition of table '{table}'",
                    spec.place(*write.at),
                    f"a backfill replaces partitions; begin and end it with a whole {partition} "
                    "(UTC)",
                )
    require_settled(state_of_stream(config, spec.id), spec.name, wanted, spec.at)


def _no_state(name: str, directory: Path, at: Location | None) -> StateError:
    return StateError(
        f"there is no state of the stream of pipeline '{name}' in {directory}, so nothing says "
        "what it may still write",
        at,
        "backfill where the state of the stream is; if no stream writes, force it",
    )
