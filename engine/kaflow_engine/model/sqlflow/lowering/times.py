"""The times of messages by which windows are made: of each other one a reading of its own."""

from collections.abc import Sequence

from kaflow_engine.model.files.tree import Entry
from kaflow_engine.model.sqlflow.lowering.parts import HANDLER
from kaflow_engine.model.sqlflow.lowering.said import Mistakes, Said, entry, mapping
from kaflow_engine.model.sqlflow.lowering.sources import Source, Typed, free_name
from kaflow_engine.model.sqlflow.lowering.windows.window import Window


def typed_by(
    said: Said, batch: str, columns: dict[str, str] | None, windows: Sequence[Window]
) -> Typed:
    """Return what is known of the columns of messages.

    Args:
        said: The file.
        batch: What its SQL calls the batch.
        columns: Those that are declared.
        windows: In the order of their tables; the time of the first is that of the messages.
    """
    held = [each.managed.closing.idle for each in windows if each.managed.closing.idle]
    times = (each.event_time for each in windows)
    return Typed(
        columns=columns,
        at=said.at(*HANDLER, "table") if batch != "batch" else said.at("pipeline", "source"),
        times=tuple(dict.fromkeys(time for time in times if time is not None)),
        idle_timeout=max(held, default=None),
    )


def rows_by_time(
    said: Said,
    window: Window | None,
    source: Source,
    typed: Typed,
    rows: str,
    relations: list[Entry],
    mistakes: Mistakes,
) -> str:
    """Return what has the rows of batches by the time of a window.

    Args:
        said: The file.
        window: None: the rows go to the sink of the pipeline.
        source: What is read.
        typed: Of its messages.
        rows: What has them by the first time.
        relations: A reading by another time is added.
        mistakes: What is wrong is added.
    """
    part = getattr(said.spec.pipeline.source, said.spec.pipeline.source.type)
    if window is None:
        return rows
    if window.event_time is None:
        if part is not None and part.event_time is None:
            mistakes.add(
                f"the time of the windows of '{window.name}' lies inside another field",
                window.select.at,
                "take a field of the message itself, or name one as event_time of the source",
            )
        return rows
    if window.event_time == typed.times[0] or (part is not None and part.event_time is not None):
        return rows
    if not source.is_kafka or rows not in source.names:
        mistakes.add(
            f"the windows of '{window.name}' are over another time than those before",
            window.select.at,
            "several times are those of one topic, whose kafka_ columns are not read; take the "
            "same column, or write a file for each",
        )
        return rows
    name, at = free_name(f"batch_by_{window.event_time}", source), window.select.at
    if all(each.key != name for each in relations):
        keys = (entry("topic", rows, at), entry("event_time", window.event_time, at))
        relations.append(entry(name, mapping(at, *keys), at))
    return name
