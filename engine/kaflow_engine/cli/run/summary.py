"""The summary of a run: the outcome of every record that was read."""

from collections.abc import Mapping, Sequence

from kaflow_engine.cli.live_view.board import account
from kaflow_engine.cli.output import table_lines
from kaflow_engine.errors import KaflowError, causes_of
from kaflow_engine.masking import masked
from kaflow_engine.telemetry.progress import CLASSES, USED, PipelineSummary, Progress


def summary_lines(newest: Sequence[Progress], endings: Mapping[str, PipelineSummary]) -> list[str]:
    """Return what to print at the end of a run.

    Args:
        newest: The last progress of each pipeline.
        endings: Of those that ended well.
    """
    of_tables = any(at.counters.get(USED) for at in newest)
    names = [name for name in CLASSES if name != USED or of_tables]
    heads = ["pipeline", "read", "=", *_spread([_words(name) for name in names]), ""]
    rows: list[Sequence[str]] = [heads]
    for at in newest:
        read, classes, missing = account(at.counters)
        verdict = "adds up" if missing == 0 else f"DOES NOT ADD UP: {missing:+d}"
        counts = _spread([str(classes[name]) for name in names])
        rows.append([at.pipeline, str(read), "=", *counts, verdict])
    lines = ["records since the state of each pipeline was created:", *table_lines(rows), ""]
    for at in newest:
        lines.append(f"{at.pipeline}: {_ending(at, endings.get(at.pipeline))}")
    return lines


def summary_data(
    newest: Sequence[Progress], endings: Mapping[str, PipelineSummary]
) -> dict[str, object]:
    """Return the same as data for JSON."""
    found: list[dict[str, object]] = []
    for at in newest:
        read, classes, missing = account(at.counters)
        ending = endings.get(at.pipeline)
        found.append(
            {
                "name": at.pipeline,
                "ending": ending.ending if ending else at.state,
                "batches": ending.batches if ending else None,
                "last_batch": at.batch,
                "records": at.records,
                "seconds": round(ending.seconds, 3) if ending else None,
                "read": read,
                **classes,
                "adds_up": missing == 0,
                "counters": dict(at.counters),
                "lag": dict(at.lag),
                "watermark": at.watermark,
                "error": at.last_error,
            }
        )
    return {"pipelines": found}


def error_data(error: BaseException) -> dict[str, object]:
    """Return what ended a run, as data for JSON."""
    from kaflow_engine.runtime.failures.failures import is_internal, is_outage, is_retryable

    known = error if isinstance(error, KaflowError) else None
    return {
        "message": known.message if known else masked("", f"{type(error).__name__}: {error}"),
        "hint": known.hint if known else None,
        "internal": is_internal(error),
        "retriable": known is not None and (is_outage(known) or is_retryable(known)),
        "causes": list(known.causes if known else causes_of(error)),
    }


def _ending(at: Progress, ended: PipelineSummary | None) -> str:
    if ended is None:
        return f"{at.state} after batch {at.batch}{_sides(at)}{_lost(at)}"
    batches = "1 batch" if ended.batches == 1 else f"{ended.batches} batches"
    return (
        f"{ended.ending} after {ended.records} records in {batches} and {ended.seconds:.1f} s"
        f"{_sides(at)}{_lost(at)}"
    )


def _sides(at: Progress) -> str:
    read, bad = (at.counters.get(name, 0) for name in ("side_read", "side_dead_letters"))
    return f"; joined sides: {read} read in all, {bad} dead letters" if read else ""


def _lost(at: Progress) -> str:
    """Say what `on_data_loss: continue` passed over."""
    lost, again = (at.counters.get(name, 0) for name in ("lost", "restarted_partitions"))
    parts = [f"{lost} offsets lost before they were read"] if lost else []
    parts += [f"{again} partitions of recreated topics read from their start"] if again else []
    return "".join(f"; {part}" for part in parts)


def _spread(cells: Sequence[str]) -> list[str]:
    """Put a plus between cells."""
    return [cell for pair in zip(cells, "+" * len(cells), strict=True) for cell in pair][:-1]


def _words(name: str) -> str:
    return name.replace("_", " ")
