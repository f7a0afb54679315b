"""What there is to ask for, as `/v1/datasets` says it."""

from collections.abc import Iterable
from typing import Any

from kaflow_engine.model.durations import format_duration
from kaflow_engine.serving.datasets import Dataset, Statement


def listing(datasets: Iterable[Dataset]) -> dict[str, Any]:
    """Return all data sets with their parameters and SQL."""
    return {"datasets": [_dataset(each) for each in datasets]}


def _dataset(dataset: Dataset) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": dataset.name,
        "description": dataset.description,
        "params": [{"name": name, "type": kind} for name, kind in dataset.params.items()],
    }
    if dataset.span is not None:
        found["range"] = {
            "since": dataset.span.since,
            "until": dataset.span.until,
            "default": format_duration(dataset.span.default),
        }
    if dataset.ttl_s is not None:
        found["cache"] = {"ttl_seconds": dataset.ttl_s}
    if dataset.grains:
        found["grains"] = {name: _grain(each) for name, each in dataset.statements.items()}
    else:
        found["sql"] = dataset.statements[""].sql.text
    return found


def _grain(statement: Statement) -> dict[str, str]:
    found = {"sql": statement.sql.text}
    if statement.max_range is not None:
        found["max_range"] = format_duration(statement.max_range)
    if statement.bucket is not None:
        found["bucket"] = format_duration(statement.bucket)
    return found
