"""What assets say of themselves: columns, lineage, owners, tags, and the file behind them."""

import re
import warnings

import dagster as dg

from kaflow_dagster.assets.views import PipelineView
from kaflow_engine.api.plan import Column, LineagePart


def column_of(
    column: Column, about: str | None, lineage: LineagePart | None, key: str | None
) -> dg.TableColumn:
    """Return a column of rows: its type, what is said of it, and where it comes from."""
    sources = lineage.sources if lineage else ()
    return dg.TableColumn(
        name=column.name,
        type=column.type,
        description=about,
        constraints=dg.TableColumnConstraints(nullable=column.name != key),
        tags={_tag_key(f"from_{topic}.{name}"): "" for topic, name in sources},
    )


def lineage_table(parts: list[LineagePart]) -> str:
    """Return where columns come from, as a table."""
    lines = ["| column | comes from |", "|---|---|"]
    for part in parts:
        sources = ", ".join(f"`{topic}.{name}`" for topic, name in part.sources)
        lines.append(f"| `{part.column}` | {sources or 'no column'} |")
    return "\n".join(lines)


def about_stream(pipeline: PipelineView) -> str:
    """Return a first line that fits a row of the catalog, then the rest."""
    if pipeline.problem:
        return f"BROKEN, cannot run: {pipeline.problem}"
    explained = pipeline.explanation
    about = explained.description if explained else None
    return " ".join(about.split()) if about else f"The stream of pipeline `{pipeline.name}`."


def source_of(pipeline: PipelineView) -> dict[str, object]:
    """Return the link to the file of a pipeline."""
    with warnings.catch_warnings():
        # the only way to link to the source, and beta for years
        warnings.simplefilter("ignore", dg.BetaWarning)
        place = dg.LocalFileCodeReference(file_path=pipeline.file, line_number=pipeline.line)
        found = dg.CodeReferencesMetadataValue(code_references=[place])
    return {"dagster/code_references": found}


def facts_of(pipeline: PipelineView) -> dict[str, object]:
    """Return what commands of the engine read of a stream: what it is, and whether it can run."""
    facts: dict[str, object] = {
        "kaflow/pipeline": dg.MetadataValue.text(pipeline.name),
        "kaflow/front_end": dg.MetadataValue.text(pipeline.front_end),
    }
    if pipeline.partitions is not None:
        facts["kaflow/partitions"] = dg.MetadataValue.int(pipeline.partitions)
    if pipeline.problem is not None:
        facts["kaflow/problem"] = dg.MetadataValue.text(pipeline.problem)
    return facts


def owners_of(pipeline: PipelineView) -> list[str]:
    """Return owners as Dagster wants them: an address, or the name of a team."""
    teams = [re.sub(r"[^A-Za-z0-9_-]", "_", o) if "@" not in o else o for o in pipeline.owners]
    return [owner if "@" in owner else f"team:{owner}" for owner in teams]


def tags_of(pipeline: PipelineView) -> dict[str, str]:
    """Return tags in the letters that Dagster takes."""
    return {_tag_key(name): _tag_value(value) for name, value in pipeline.tags.items()}


def _tag_key(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", text)[:63]


def _tag_value(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", text)[:63]
