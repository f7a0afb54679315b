"""What a stream has written, as materializations: rates, offsets, and the newest rows."""

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import dagster as dg

from kaflow_dagster.assets.translator import KaflowTranslator
from kaflow_dagster.assets.views import PipelineView
from kaflow_dagster.checks.output_checks import carry_over
from kaflow_dagster.runs.background import Errand
from kaflow_engine.api.errors import masked
from kaflow_engine.api.plan import Flow
from kaflow_engine.api.project import Config
from kaflow_engine.api.status import Progress

if TYPE_CHECKING:
    from kaflow_engine.api.outputs import NewestRows  # a code location loads without a client

NEWEST = 10
"""Rows that a materialization shows, unless the project says otherwise."""

_CELL = 120
_COLUMNS = 24
_PARTITIONS = 64
"""Of a topic with more, the sum of their offsets is shown."""
_WAIT_S = 15.0
"""How long a report waits for the newest rows."""
_SLOW_S = 1.0
_PAUSE_S = 30.0
"""After a read that failed slowly, as with brokers that are away: no other output is tried."""

Kind = Literal["rows", "letters"]
Cell = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A topic or table that a stream writes."""

    kind: Kind
    target: str
    """Its name."""
    key: dg.AssetKey
    checks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Running:
    """A stream that has a plan."""

    plan: Flow
    config: Config


@dataclass(frozen=True, slots=True)
class _Reported:
    at: float
    count: int


def outputs_of(pipeline: PipelineView, translator: KaflowTranslator) -> tuple[Output, ...]:
    """Return what a pipeline writes; nothing where it is broken."""
    if pipeline.explanation is None:
        return ()
    rows = [
        Output(
            kind="rows",
            target=output.part.target,
            key=translator.output_key(output),
            checks=output.checks,
        )
        for output in pipeline.written
    ]
    letters = pipeline.explanation.dead_letters
    if letters is None:
        return tuple(rows)
    return (*rows, Output(kind="letters", target=letters, key=translator.topic_key(letters)))


Read = Callable[[Output, Running, int], "NewestRows"]


class OutputReports:
    """Materializes what streams write: with a report, if something was written since the last.

    These events belong to no run: a run keeps all of its own in memory, as long as it lives.
    """

    def __init__(
        self,
        instance: dg.DagsterInstance,
        run_id: str,
        newest: int,
        read: Read | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin with a session.

        Args:
            instance: Where events go.
            run_id: Of the session.
            newest: Rows to show; 0: none are read.
            read: How; None: from Kafka and tables.
            clock: In seconds.
        """
        self._instance, self._run_id, self._newest = instance, run_id, newest
        self._rows, self._clock = read or read_newest, clock
        self._began = clock()
        self._reported: dict[tuple[str, dg.AssetKey], _Reported] = {}
        self._errand = Errand()
        self._paused_until = self._began

    def report(self, outputs: Sequence[Output], progress: Progress, running: Running) -> None:
        """Report the outputs of a stream that were written to since, and each once."""
        for output in outputs:
            which = progress.pipeline, output.key
            before = self._reported.get(which)
            count = progress.letters
            if output.kind == "rows":
                count = progress.written.get(output.target, 0)
            if before is not None and before.count == count:
                continue
            now = _Reported(self._clock(), count)
            self._reported[which] = now
            metadata = _numbers(progress, before or _Reported(self._began, 0), now)
            metadata |= _newest(self._read(output, running))
            metadata["kaflow/run"] = dg.MetadataValue.dagster_run(self._run_id)
            event = dg.AssetMaterialization(asset_key=output.key, metadata=metadata)
            self._instance.report_runless_asset_event(event)
        for output in outputs:
            carry_over(self._instance, output.key, output.checks)

    def _read(self, output: Output, running: Running) -> "NewestRows | None":
        began = self._clock()
        if self._newest <= 0 or began < self._paused_until:
            return None
        read = partial(self._rows, output, running, self._newest)
        found = self._errand.result(read, _WAIT_S)
        if found is None and self._clock() - began > _SLOW_S:
            self._paused_until = self._clock() + _PAUSE_S
        return found


def read_newest(output: Output, running: Running, limit: int) -> "NewestRows":
    """Return the newest rows, or dead letters, of a stream.

    Raises:
        SourceError: They cannot be read.
    """
    from kaflow_engine.api.outputs import newest_letters, newest_rows  # they import a client

    if output.kind == "letters":
        return newest_letters(running.plan, running.config, limit)
    sink = next(each for each in running.plan.sinks if each.target == output.target)
    return newest_rows(running.plan, sink, running.config, limit)


def _numbers(
    progress: Progress, before: _Reported, now: _Reported
) -> dict[str, dg.MetadataValue[Any]]:
    rows = now.count - before.count if now.count >= before.count else now.count
    seconds = max(now.at - before.at, 1.0)
    return {
        "kaflow/mode": dg.MetadataValue.text("stream"),
        "kaflow/rows": dg.MetadataValue.int(rows),
        "kaflow/rows_per_second": dg.MetadataValue.float(round(rows / seconds, 2)),
        "kaflow/batch": dg.MetadataValue.int(progress.batch),
        "kaflow/lag": dg.MetadataValue.int(sum(progress.lag.values())),
        "kaflow/offsets_read": dg.MetadataValue.json(
            {topic: _offsets(of) for topic, of in sorted(progress.offsets.items())}
        ),
    }


def _newest(found: "NewestRows | None") -> dict[str, dg.MetadataValue[Any]]:
    metadata: dict[str, dg.MetadataValue[Any]] = {}
    if found is None:
        return metadata
    if found.offsets is not None:
        metadata["kaflow/offsets_written"] = dg.MetadataValue.json(_offsets(found.offsets))
    if found.version is not None:
        metadata["kaflow/table_version"] = dg.MetadataValue.int(found.version)
    if found.rows:
        metadata["kaflow/newest"] = table_of(found.rows)
    return metadata


def table_of(rows: Sequence[Mapping[str, Any]]) -> dg.TableMetadataValue:
    """Return rows as a table: the first columns, long values cut, secrets masked."""
    names = list(dict.fromkeys(name for row in rows for name in row))[:_COLUMNS]
    records = [dg.TableRecord({name: cell(row.get(name)) for name in names}) for row in rows]
    columns = [dg.TableColumn(name, _type([row.data[name] for row in records])) for name in names]
    return dg.MetadataValue.table(records, schema=dg.TableSchema(columns=columns))


def cell(value: object) -> Cell:
    """Return a value as a cell: masked before it is cut, so that no part of a secret is left.

    >>> cell(5), cell(True), cell(None), cell("a"), cell({"a": [1]})
    (5, True, None, 'a', '{"a": [1]}')
    >>> len(cell("x" * 500))
    120
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, int):
        return value if abs(value) < 2**53 else str(value)  # the page reads it as a double
    if isinstance(value, bytes):
        value = value.decode(errors="backslashreplace")
    text = value if isinstance(value, str) else _plain(value)
    text = masked("", text)
    return text if len(text) <= _CELL else f"{text[: _CELL - 1]}…"


def _plain(value: object) -> str:
    if isinstance(value, list | dict):
        return json.dumps(value, default=str, ensure_ascii=False)
    return str(value)


def _type(values: Sequence[Cell]) -> str:
    kinds = {type(value).__name__ for value in values if value is not None}
    return kinds.pop() if len(kinds) == 1 and kinds <= {"bool", "int", "float"} else "string"


def _offsets(of: Mapping[int, int]) -> dict[str, int]:
    if len(of) > _PARTITIONS:
        return {f"sum of {len(of)} partitions": sum(of.values())}
    return {str(partition): offset for partition, offset in sorted(of.items())}
