"""The process that runs checks: a line of JSON and Arrow streams on stdin, JSON on stdout."""

import json
import sys
from collections.abc import Mapping, Sequence
from string import Template
from typing import Any, cast

SAMPLE = 10
"""Rows that failed, at most."""


def answers(frames: Sequence[Any], checks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Run checks, each over the pandas data frame whose number it has."""
    import great_expectations as gx

    _close_expressions()
    # its own types are unknown in part
    context = cast(Any, gx).get_context(mode="ephemeral")
    asset = context.data_sources.add_pandas("rows").add_dataframe_asset("rows")
    definition = asset.add_batch_definition_whole_dataframe("rows")
    batches = [definition.get_batch({"dataframe": frame}) for frame in frames]
    known = {name.lower(): name for name in dir(gx.expectations)}
    return [
        _answer(frames[check["rows"]], batches[check["rows"]], gx.expectations, known, check)
        for check in checks
    ]


def _close_expressions() -> None:
    """Refuse the expressions of pandas, which may call anything that Python can."""
    import pandas as pd

    def refuse(*arguments: object, **more: object) -> None:
        raise ValueError("expressions of pandas are code, and are not run")

    pd.DataFrame.query = pd.DataFrame.eval = pd.eval = refuse  # type: ignore[method-assign]


def _answer(
    frame: Any, batch: Any, expectations: Any, known: Mapping[str, str], check: Mapping[str, Any]
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "passed": False,
        "failed": 0,
        "observed": None,
        "sample": [],
        "error": None,
        "words": None,
    }
    name = known[check["expectation"].replace("_", "")]
    try:
        expectation = getattr(expectations, name)(**check["arguments"])
        validated = batch.validate(expectation, result_format="COMPLETE")
        found["words"] = _words(validated)
        result = validated.to_json_dict()
    except Exception as error:
        found["error"] = " ".join(str(error).split())
        return found
    found["passed"] = result["success"]
    raised = [
        each.get("exception_message")
        for each in _exceptions(result.get("exception_info") or {})
        if each.get("raised_exception")
    ]
    found["error"] = raised[0] if raised else None
    details: dict[str, Any] = result.get("result") or {}
    found["failed"] = details.get("unexpected_count") or 0
    found["observed"] = details.get("observed_value")
    places = [place for place in details.get("unexpected_index_list") or () if type(place) is int]
    rows = frame.iloc[places[:SAMPLE]].to_dict("records")
    found["sample"] = [{key: _plain(value) for key, value in row.items()} for row in rows]
    return found


def _words(validated: Any) -> str | None:
    """Return what is expected, as a sentence."""
    validated.render()
    for part in validated.expectation_config.rendered_content or ():
        if part.name.startswith("atomic.prescriptive") and part.value.template:
            given: dict[str, Any] = part.value.params or {}
            params = {name: each["value"] for name, each in given.items()}
            return Template(part.value.template).safe_substitute(params)
    return None


def _exceptions(info: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if "raised_exception" in info:
        return [info]
    return [each for each in info.values() if isinstance(each, dict)]


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def main() -> None:
    """Answer one request."""
    import pyarrow as pa

    request = json.loads(sys.stdin.buffer.readline())
    frames = [
        pa.ipc.open_stream(sys.stdin.buffer).read_all().to_pandas()
        for _ in range(request["frames"])
    ]
    said = answers(frames, request["checks"])
    json.dump(said, sys.stdout, default=str)


if __name__ == "__main__":
    main()
