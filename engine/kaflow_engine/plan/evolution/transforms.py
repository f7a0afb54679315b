"""Transforms in the comparison of plans: they keep nothing, and what they make may change."""

from collections import Counter
from dataclasses import asdict
from typing import Any

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import entries_of
from kaflow_engine.flow.transforms import Transform


def documents_of_transforms(flow: Flow) -> list[dict[str, Any]]:
    """Return what transforms rows in a flow as documents."""
    found = [each for each in flow.operators if isinstance(each, Transform)]
    known = Counter(each.name for each in found)
    return [
        {
            "called": f"transform '{each.name}'"
            + (f" ({each.id})" if known[each.name] > 1 else ""),
            **asdict(each.params),
            "columns": [asdict(column) for column in each.results],
            "selected": [
                f"{sql} AS {column.name}"
                for entry in entries_of(flow, each)
                for column, sql in entry.columns
            ],
            "where": [entry.where for entry in entries_of(flow, each) if entry.where],
        }
        for each in found
    ]
