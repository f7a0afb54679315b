"""Previews in Dagster: a job whose run has the rows of a pipeline's nodes as a table."""

from collections.abc import Iterator
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any

import dagster as dg

from kaflow_dagster.assets.views import PipelineView, ProjectView
from kaflow_dagster.runs.background import Background, failure
from kaflow_dagster.runs.names import dagster_name
from kaflow_engine.api.errors import KaflowError, without_secrets

if TYPE_CHECKING:
    from kaflow_engine.api.run import Asked, Shown

_LOOK_S = 0.5
_SECONDS, _MOST_SECONDS = 30, 600
_ROWS, _MOST_ROWS = 100, 1_000
"""Rows are kept in Dagster's storage with their run."""
_LONGEST = 2_000
"""Letters of a row."""
_LETTER = "dead letter"
_COLUMNS = ("node", "kind", "op", "key", "row")


def _optional(kind: Any, default: Any, description: str) -> dg.Field:
    return dg.Field(kind, default_value=default, is_required=False, description=description)


_OPTIONS = {
    "node": _optional(dg.Noneable(str), None, "A relation or an output; without it, all of them."),
    "seconds": _optional(int, _SECONDS, f"How long to look, at most {_MOST_SECONDS}."),
    "rows": _optional(int, _ROWS, f"After how many rows it ends, at most {_MOST_ROWS}."),
    "from": _optional(
        dg.Enum("Beginning", [dg.EnumValue("latest"), dg.EnumValue("earliest")]),
        "latest",
        "Where events begin.",
    ),
}


def build_preview_job(pipeline: PipelineView, project: ProjectView) -> dg.JobDefinition:
    """Return the job that previews a pipeline; its run writes nothing, beside a stream or alone.

    Args:
        pipeline: A sound one.
        project: Where it is read again.
    """
    name = pipeline.name

    @dg.op(name=dagster_name("show", name), config_schema=_OPTIONS, out=dg.Out(dg.Nothing))
    def show(context: dg.OpExecutionContext) -> Iterator[object]:
        yield _previewed(context, name, project)

    @dg.job(
        name=dagster_name("preview", name),
        description=f"Shows rows of `{name}` as they come, and writes none of them.",
        executor_def=dg.in_process_executor,
        tags={"kaflow/kind": "preview"},
    )
    def job() -> None:
        show()

    return job


def _previewed(
    context: dg.OpExecutionContext, name: str, project: ProjectView
) -> "dg.Output[None]":
    from kaflow_engine.api.run import Asked  # a code location loads without a Kafka client

    options: dict[str, Any] = context.op_config
    asked = Asked(
        node=options["node"],
        seconds=min(max(options["seconds"], 1), _MOST_SECONDS),
        rows=min(max(options["rows"], 1), _MOST_ROWS),
        since=options["from"],
    )
    try:
        deadline = project.load_config().drain_deadline
    except KaflowError as error:
        raise failure(error) from None
    found: list[Shown] = []
    with Background(partial(_look, context, name, project, asked, found), deadline) as work:
        while work.runs_after(_LOOK_S):
            pass
    if work.error is not None:
        raise failure(work.error) from None
    return dg.Output(None, metadata=_metadata(found))


def _look(
    context: dg.OpExecutionContext,
    name: str,
    project: ProjectView,
    asked: "Asked",
    found: "list[Shown]",
    stop: Event,
) -> None:
    from kaflow_engine.api.run import preview

    config = project.load_config()
    spec = project.load(name, config)
    found += preview(spec, config, asked, stop, context.log.info)


def _metadata(found: "list[Shown]") -> dict[str, Any]:
    return {
        "kaflow/rows": dg.MetadataValue.table(
            [dg.TableRecord(_record(each)) for each in found],
            schema=dg.TableSchema(columns=[dg.TableColumn(name) for name in _COLUMNS]),
        ),
        "kaflow/count": dg.MetadataValue.int(len(found)),
    }


def _record(each: "Shown") -> dict[str, str]:
    from kaflow_engine.api.run import ShownLetter

    if isinstance(each, ShownLetter):
        about = each.about
        place = f"{about['topic']}/{about['partition']}@{about['offset']}"
        why = f"{about['phase']}: {about['error']}: {about['message']}"
        cells = (place, _LETTER, "", "", why)
    else:
        cells = (each.node.name, each.node.kind, each.operation, each.key or "", each.row or "")
    shown = (without_secrets(cell)[:_LONGEST] for cell in cells)
    return dict(zip(_COLUMNS, shown, strict=True))
