"""What each of `sources` may be: one kind of source, named by its `type`."""

from collections.abc import Mapping
from typing import Annotated, cast

from pydantic import Discriminator, Tag

from kaflow_engine.model.sources.database_specs import ClickHouseSourceSpec, PostgresSourceSpec
from kaflow_engine.model.sources.hybrid_specs import HybridSourceSpec
from kaflow_engine.model.sources.source_specs import (
    FilesSourceSpec,
    GeneratorSourceSpec,
    WebhookSourceSpec,
)
from kaflow_engine.model.spec import CHOICE

SOURCE_TYPES = ("clickhouse", "files", "generator", "hybrid", "postgres", "webhook")
_FIRST = f"{CHOICE}files"


def _choice(value: object) -> str:
    """Return the tag of what a source is; an unknown `type` is reported with its key."""
    kind: object = getattr(value, "type", None)
    if isinstance(value, dict):
        kind = cast(Mapping[str, object], value).get("type")
    return f"{CHOICE}{kind}" if kind in SOURCE_TYPES else _FIRST


AnySource = Annotated[
    Annotated[FilesSourceSpec, Tag("\0files")]
    | Annotated[ClickHouseSourceSpec, Tag("\0clickhouse")]
    | Annotated[GeneratorSourceSpec, Tag("\0generator")]
    | Annotated[HybridSourceSpec, Tag("\0hybrid")]
    | Annotated[PostgresSourceSpec, Tag("\0postgres")]
    | Annotated[WebhookSourceSpec, Tag("\0webhook")],
    Discriminator(_choice),
]
"""What each of `sources` may be."""
