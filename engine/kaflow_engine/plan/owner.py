"""Whether a backfill may write over a range: its stream owns what it may still write to."""

from pathlib import Path

from kaflow_engine.errors import ModelError, StateError
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.operators.params import Backfill, instant
from kaflow_engine.operators.table_rows import is_whole
from kaflow_engine.plan.verdict import read_state


def check_backfill(spec: PipelineSpec, config: Config, wanted: Backfill, force: bool) -> None:
    """Refuse a range that cuts a partition of a table, or that the stream may still write to.

    Args:
        spec: The pipeline.
        config: Says where its state is.
        wanted: The range.
        force: Whether stream and backfill may both write.

    Raises:
        ModelError: The range begins or ends within a partition.
        StateError: The stream's watermark has not come behind the range.
    """
    for at in (wanted.start, wanted.end):
        if spec.output.table is not None and not is_whole(at, spec.output.partition):
            raise ModelError(
                f"{instant(at)} is in the middle of a partition of table '{spec.output.table}'",
                spec.place("output"),
                f"a backfill replaces partitions; begin and end it with a whole "
                f"{spec.output.partition} (UTC)",
            )
    stored = read_state(Path(config.state.rocksdb.path).absolute() / spec.id)
    mark = stored.watermark
    if force or stored.state is None or (mark is not None and mark >= wanted.end):
        return
    until = "has read nothing yet" if mark is None else f"has come to {instant(mark)}"
    raise StateError(
        f"the stream of pipeline '{spec.name}' may still write rows of {wanted}: it {until}",
        spec.at,
        "choose an earlier end, or force it and accept that both write",
    )
