"""Task metrics: what the tasks of a batch report to the driver beside their rows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from kaflow_engine.connectors.contract import MeasuringSink, Sink
from kaflow_engine.measures import Measurements, Measures, added, of_json, to_json
from kaflow_engine.operators.rows.reports import BatchReport
from kaflow_engine.plugins.state import States, after
from kaflow_engine.state.log.changes import ChangeFile
from kaflow_engine.telemetry.progress import SideOutputCount, StageSpan
from kaflow_engine.telemetry.traces import first_links


def changes_of(report: BatchReport) -> Mapping[str, ChangeFile]:
    """Return the change files that tasks wrote, by state partition."""
    found: dict[str, ChangeFile] = {}
    for note in report.notes:
        for name, file in note.get("changes", {}).items():
            found[name] = ChangeFile(**file)
    return found


def rows_written(before: Mapping[str, int], report: BatchReport) -> dict[str, int]:
    """Return the rows by topic or table: those of before, and those that tasks have written."""
    found = dict(before)
    for note in report.notes:
        for target, rows in note.get("rows", {}).items():
            found[target] = found.get(target, 0) + rows
    return found


def side_outputs(
    before: Sequence[SideOutputCount], report: BatchReport
) -> tuple[SideOutputCount, ...]:
    """Return what side outputs were shown: before, and in this batch."""
    found = {(each.output, each.plugin): each for each in before}
    for note in _shown(report):
        at = note["output"], note["plugin"]
        known = found.get(at) or SideOutputCount(output=at[0], plugin=at[1])
        rows, missed = note["rows"], note["rows"] if "error" in note else 0
        found[at] = replace(known, rows=known.rows + rows, missed=known.missed + missed)
    return tuple(found.values())


def side_output_errors(report: BatchReport) -> Iterator[str]:
    """Yield what to log: of each side output that failed in this batch the first error."""
    failed: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for note in _shown(report):
        if "error" in note:
            failed.setdefault((note["output"], note["plugin"]), []).append(note)
    for (output, plugin), notes in failed.items():
        rows = sum(note["rows"] for note in notes)
        some = f"{rows:,} row{'' if rows == 1 else 's'}"
        yield f"side output '{plugin}' of '{output}' failed on {some}: {notes[0]['error']}"


def _shown(report: BatchReport) -> Iterator[Mapping[str, Any]]:
    return (note["side_output"] for note in report.notes if "side_output" in note)


def states_after(before: States, report: BatchReport) -> dict[str, dict[str, Any]]:
    """Return the states of plugins after a batch.

    Raises:
        SinkUnfit: A plugin cannot merge what rows add to its own.
    """
    return after(before, (note["learned"] for note in report.notes if "learned" in note))


def measured(before: Measurements, report: BatchReport) -> Measurements:
    """Return what was measured: before, and by the tasks of this batch."""
    new = (row for note in report.notes for row in note.get("measures", ()))
    read = Measures()
    for (topic, _), part in report.partitions.items():
        read.count("source_records", part.count, topic=topic)
    for topic, size in report.sizes.items():
        read.count("source_bytes", size, topic=topic)
    return (*added(dict(before), (*of_json(new), *read.taken().items())).items(),)


def with_measures_of(sinks: Sequence[Sink], report: BatchReport) -> BatchReport:
    """Return a report with what sinks have measured on the driver since the batch before."""
    measuring = (cast(MeasuringSink, sink) for sink in sinks if sink.capabilities.measures)
    new = tuple({"measures": to_json(taken)} for sink in measuring if (taken := sink.measured()))
    return replace(report, notes=(*report.notes, *new)) if new else report


def task_phases(report: BatchReport) -> dict[str, float]:
    """Return the milliseconds that tasks spent by phase, summed over tasks."""
    found: dict[str, float] = {}
    for note in report.notes:
        for phase, spent in note.get("phases", {}).items():
            found[f"task.{phase}"] = found.get(f"task.{phase}", 0.0) + spent
    return found


def state_sizes(report: BatchReport) -> dict[str, tuple[int, int]]:
    """Return entries and bytes of the state partitions that were used, before the batch."""
    found: dict[str, tuple[int, int]] = {}
    for note in report.notes:
        found |= {name: (entries, size) for name, (entries, size) in note.get("sizes", {}).items()}
    return found


def stage_spans(report: BatchReport, name: Callable[[int], str]) -> tuple[StageSpan, ...]:
    """Return each stage of a batch from the first start of a task to the last end.

    Args:
        report: Of the batch.
        name: What a stage is called, by its number.
    """
    noted: dict[int, list[tuple[int, int, int]]] = {}
    for note in report.notes:
        for number, start, end, rows in note.get("stages", ()):
            noted.setdefault(number, []).append((start, end, rows))
    return tuple(
        StageSpan(
            name=name(number),
            start=min(start for start, _, _ in tasks),
            end=max(end for _, end, _ in tasks),
            rows=sum(rows for _, _, rows in tasks),
            tasks=len(tasks),
        )
        for number, tasks in sorted(noted.items())
    )


def links(report: BatchReport) -> tuple[str, ...]:
    """Return the headers `traceparent` of all tasks, each once."""
    return tuple(
        first_links(each for note in report.notes for each in note.get("traceparents", ()))
    )


def skew(report: BatchReport) -> float | None:
    """Return the share of the slowest task in the longest stage; None where no tasks compare."""
    spent: dict[str, list[float]] = {}
    for note in report.notes:
        for phase, ms in note.get("phases", {}).items():
            if phase.startswith("run."):
                spent.setdefault(phase, []).append(ms)
    longest = max(spent.values(), key=sum, default=list[float]())
    total = sum(longest)
    return max(longest) / total if len(longest) > 1 and total > 0 else None
