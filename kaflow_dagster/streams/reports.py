"""What a stream reports: of itself, of partitions that it has finished, and of what it writes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import dagster as dg

from kaflow_dagster.assets.specs import tables_of
from kaflow_dagster.assets.translator import KaflowTranslator
from kaflow_dagster.assets.views import PipelineView
from kaflow_dagster.checks.stream_checks import evaluations
from kaflow_dagster.streams.outputs import Output, OutputReports, Running, outputs_of, table_of
from kaflow_dagster.tables.closed_partitions import ClosedPartitions
from kaflow_engine.api.plan import TablePart
from kaflow_engine.api.status import Progress, accounts_of, judge, slowest


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineAssets:
    """The assets that reports of one pipeline are about."""

    stream: dg.AssetKey
    outputs: tuple[Output, ...]
    tables: tuple[tuple[dg.AssetKey, TablePart], ...]


def assets_of(pipeline: PipelineView, translator: KaflowTranslator) -> PipelineAssets:
    """Return the assets of a pipeline."""
    return PipelineAssets(
        stream=translator.stream_key(pipeline),
        outputs=outputs_of(pipeline, translator),
        tables=tuple(
            (translator.get_asset_spec(table).key, table.part) for table in tables_of([pipeline])
        ),
    )


class Reports:
    """The reports of one pipeline in one session."""

    def __init__(
        self, instance: dg.DagsterInstance, assets: PipelineAssets, outputs: OutputReports
    ) -> None:
        """Begin with a session; partitions that were filled before it are known."""
        self._instance, self._assets, self._outputs = instance, assets, outputs
        self._closed = [
            (table.name, ClosedPartitions(key, table, instance.get_materialized_partitions(key)))
            for key, table in assets.tables
        ]

    def of(
        self, progress: Progress, running: Running | None, address: str | None = None
    ) -> Iterator[dg.AssetMaterialization]:
        """Report a stream, then what its counters say, then what it has written.

        Args:
            progress: Of the stream.
            running: What runs; None: it has no plan yet.
            address: Where its status is served.
        """
        metadata = report(progress, address)
        yield dg.AssetMaterialization(asset_key=self._assets.stream, metadata=metadata)
        for found in evaluations(self._instance, self._assets.stream):
            self._instance.report_runless_asset_event(found)
        if running is not None:
            self._outputs.report(self._assets.outputs, progress, running)

    def closed(self, progress: Progress) -> Iterator[dg.AssetMaterialization]:
        """Report the partitions of tables that the stream has finished since the last call."""
        for name, table in self._closed:
            yield from table.since(progress.settled.get(name))


def report(progress: Progress, address: str | None = None) -> Mapping[str, dg.MetadataValue]:
    """Return what is shown, and plotted, of a stream whose status is served at an address."""
    numbers: dict[str, dg.MetadataValue] = {
        "kaflow/state": dg.MetadataValue.text(progress.state),
        "kaflow/verdict": dg.MetadataValue.text(str(judge(progress))),
        "kaflow/batch": dg.MetadataValue.int(progress.batch),
        "kaflow/batch_ms": dg.MetadataValue.float(round(progress.batch_ms, 1)),
        "kaflow/records_per_second": dg.MetadataValue.float(round(progress.records_per_second, 1)),
        "kaflow/lag": dg.MetadataValue.int(sum(progress.lag.values())),
        "kaflow/waiting": dg.MetadataValue.int(progress.waiting),
        "kaflow/dead_letters": dg.MetadataValue.int(progress.dead_letters),
        "kaflow/late": dg.MetadataValue.int(progress.counters.get("late", 0)),
        "kaflow/emitted": dg.MetadataValue.int(progress.counters.get("emitted", 0)),
        "kaflow/failures": dg.MetadataValue.int(progress.failures),
    }
    if progress.batches:
        numbers["kaflow/nodes"] = table_of([*nodes(progress)])
    if progress.watermark is not None:
        numbers["kaflow/watermark"] = dg.MetadataValue.timestamp(progress.watermark / 1000)
    if address is not None:
        numbers["kaflow/status"] = dg.MetadataValue.url(f"{address}/status")
    if progress.last_error is not None:
        numbers["kaflow/last_error"] = dg.MetadataValue.text(progress.last_error)
    return numbers


_SEVERAL = ("source", "transform", "sink")


def nodes(progress: Progress) -> Iterator[Mapping[str, Any]]:
    """Yield what each part of a pipeline took, gave and waited for, in the order of rows."""
    accounts = accounts_of(progress)
    busiest, total = slowest(accounts), sum(each.seconds for each in accounts)
    for each in accounts:
        share = each.seconds / total if total else 0.0
        yield {
            "part": f"{each.kind} {each.name}" if each.kind in _SEVERAL else each.name,
            "rows in": None if each.rows_in is None else int(each.rows_in),
            "rows out": None if each.rows_out is None else int(each.rows_out),
            "worked s": round(each.seconds, 3),
            "share of work": f"{share:.0%}" + (", the slowest" if each == busiest else ""),
            "without rows s": round(each.idle, 3),
            "held up s": round(each.blocked, 3),
        }
