"""Gives every argument of every expectation a text that is code, and reports what ran.

`python -m tests.engine.checks.walk_here <folder>`: importing great-expectations takes ten seconds,
which all of them share. Each argument gets two of the payloads in turn, all of them with
KAFLOW_EXPECTATIONS=all.
"""
# pyright: basic

import json
import os
import sys
from pathlib import Path

import great_expectations as gx
import pandas as pd

from kaflow_engine.checks.child import answers
from kaflow_engine.model.checks import expectations

FIXED = {
    **{"column": "text", "column_A": "text", "column_B": "other", "column_list": ["text", "other"]},
    **{"value_set": ["a"], "value_pairs_set": [["a", "b"]], "type_": "str", "type_list": ["str"]},
    **{"regex": "a", "regex_list": ["a"], "like_pattern": "a", "like_pattern_list": ["a"]},
    **{"strftime_format": "%Y", "value": 1, "sum_total": 1, "threshold": 1, "double_sided": True},
    "quantile_ranges": {"quantiles": [0.5], "value_ranges": [[0, 1]]},
}
"""What stands in the arguments that an expectation needs, while another one is tried."""
OF_ALL = frozenset(
    "id meta notes result_format description catch_exceptions rendered_content severity windows "
    "batch_id".split()
)
"""Arguments that every expectation inherits, and that the loader refuses; tried with one."""


def payloads(goal: Path) -> list[object]:
    """Return what would make `goal`, if anything ran it."""
    touch = f"touch {goal}"
    query = f"@pd.io.common.os.system('{touch}') == 0"
    return [
        query,
        f"__import__('os').system('{touch}')",
        f"{{{{ cycler.__init__.__globals__.os.system('{touch}') }}}}",
        f"$({touch})",
        {"$PARAMETER": f"__import__('os').system('{touch}')"},
        {"type": "pass_through", "pass_through_filter": query},
        {
            "type": "comparison",
            "column": {"name": f"text == 'a' or {query} or text"},
            "operator": "==",
            "parameter": "x",
        },
    ]


def in_turn(goal: Path, number: int) -> list[object]:
    """Return what the argument of a number is tried with."""
    every = payloads(goal)
    if os.environ.get("KAFLOW_EXPECTATIONS") == "all":
        return every
    return [every[(number + further) % len(every)] for further in (0, 3)]


def walk(goal: Path) -> tuple[list[str], list[str]]:
    """Return every argument that was tried, and the expectations where something ran."""
    texts = [each for each in payloads(goal) if isinstance(each, str)]
    frame = pd.DataFrame({"text": texts, "other": texts, "at": range(len(texts))})
    frame = frame.assign(**{text: texts for text in texts})
    names = {name.lower(): name for name in dir(gx.expectations)}
    tried, ran = [], []
    for expectation in expectations():
        kind = getattr(gx.expectations, names[expectation.replace("_", "")])
        base = {name: value for name, value in FIXED.items() if name in kind.__fields__}
        wanted = []
        for field in kind.__fields__:
            if field in OF_ALL and expectation != expectations()[0]:
                continue
            tried.append(f"{expectation}.{field}")
            beside = [{"condition_parser": parser} for parser in ("pandas", "python")]
            wanted += [
                found
                for payload in in_turn(goal, len(tried))
                for more in (beside if field == "row_condition" else [{}])
                if (found := _taken(kind, {**base, **more}, field, payload))
            ]
        answers([frame], [{"rows": 0, "expectation": expectation, "arguments": w} for w in wanted])
        if goal.exists():
            ran.append(expectation)
            goal.unlink()
    return tried, ran


def _taken(kind, base, field, payload):
    """Return arguments with a payload, in the first form that the expectation takes."""
    for value in (payload, [payload], {"a": payload}):
        try:
            kind(**{**base, field: value})
        except Exception:
            continue
        return {**base, field: value}
    return None


if __name__ == "__main__":
    sys.stdout.write(json.dumps(walk(Path(sys.argv[1]) / "ran")))
