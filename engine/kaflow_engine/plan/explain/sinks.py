"""Explains where the rows of outputs go: tables in the warehouse, and sinks that a file names."""

from pathlib import Path

from kaflow_engine.connectors.sinks import sink_kind
from kaflow_engine.flow.sinks import ConnectorSink, Sink
from kaflow_engine.model.config import Config
from kaflow_engine.model.durations import format_duration
from kaflow_engine.model.outputs.output_specs import OutputSpec, SinkSpec, Write
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.explain.explanation import SinkPart, TablePart


def sink_part(said: SinkSpec, planned: Sink | None) -> SinkPart:
    """Return what is said of a sink that the file names; `planned` is None without columns."""
    return SinkPart(
        kind=said.kind,
        target=said.target,
        settings=tuple(
            (name.replace("_", " "), _setting(name, value))
            for name, value in said.settings.items()
            if value is not None
        ),
        shared=said.is_shared,
        changes=planned.changes if isinstance(planned, ConnectorSink) else None,
    )


def _setting(name: str, value: str | int | bool | None) -> str:
    if name == "interval" and isinstance(value, int):
        return format_duration(value)
    return ("yes" if value else "no") if isinstance(value, bool) else " ".join(str(value).split())


def guarantee(spec: PipelineSpec, write: Write) -> str:
    """Return what an output promises, and why."""
    kind = write.sink.kind if write.sink else "delta" if write.output.table else "kafka"
    promised = sink_kind(kind).capabilities(
        spec.delivery, write.sink.settings if write.sink else {}
    )
    return f"{promised.guarantee.replace('_', ' ')}: {promised.reason}"


def table_part(spec: PipelineSpec, config: Config, output: OutputSpec) -> TablePart | None:
    """Return what is said of a table in the warehouse; None of other outputs."""
    if output.table is None:
        return None
    return TablePart(
        name=output.table,
        path=str(Path(config.warehouse).absolute() / output.table),
        partition=output.partition,
        interval=output.interval,
        start=spec.backfill.start,
        schedule=spec.backfill.schedule,
    )
