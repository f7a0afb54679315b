"""What Dagster's assets say of streams: which pipeline, its switch, and its newest report."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Fact = str | int | float

_VALUES = ("text", "intRepr", "floatValue", "jsonString", "mdStr", "url", "timestamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """The stream of a pipeline, as its asset shows it."""

    name: str
    """Of the pipeline."""
    front_end: str
    location: str
    """The code location that it is from."""
    repository: str
    sensor: str
    """Its switch."""
    run: str
    """The value of the tag of its runs: its name, or that of its group."""
    together: tuple[str, ...]
    """The pipelines that its switch is for."""
    problem: str | None = None
    """Why it cannot run."""
    partitions: int | None = None
    """Of its state, where its author says how many."""
    plan: str = ""
    """The drawing of its plan."""
    reported: float | None = None
    """When it has reported last, in epoch seconds."""
    report: Mapping[str, Fact] = field(default_factory=dict[str, Fact])
    """What it has reported, without `kaflow/` in front."""

    @property
    def selector(self) -> Mapping[str, str]:
        """Name the sensor as GraphQL does."""
        return {
            "repositoryName": self.repository,
            "repositoryLocationName": self.location,
            "sensorName": self.sensor,
        }


def stream_of(node: Mapping[str, Any]) -> Stream | None:
    """Return the stream that an asset node shows; None: it shows something else."""
    facts = _facts(node["metadataEntries"])
    if "switch" not in facts or "pipeline" not in facts:
        return None
    switch = json.loads(str(facts["switch"]))
    newest = next(iter(node["assetMaterializations"]), None)
    partitions = facts.get("partitions")
    return Stream(
        name=str(facts["pipeline"]),
        front_end=str(facts.get("front_end", "")),
        location=node["repository"]["location"]["name"],
        repository=node["repository"]["name"],
        sensor=switch["sensor"],
        run=switch["run"],
        together=tuple(switch["pipelines"]),
        problem=str(facts["problem"]) if "problem" in facts else None,
        partitions=int(partitions) if partitions is not None else None,
        plan=str(facts.get("plan", "")).removeprefix("```\n").removesuffix("\n```"),
        reported=float(newest["timestamp"]) / 1000 if newest else None,
        report=_facts(newest["metadataEntries"]) if newest else {},
    )


def _facts(entries: Sequence[Mapping[str, Any]]) -> dict[str, Fact]:
    found: dict[str, Fact] = {}
    for entry in entries:
        label = str(entry["label"])
        value = next((entry[key] for key in _VALUES if entry.get(key) is not None), None)
        if entry.get("intRepr") is not None:
            value = int(entry["intRepr"])  # as text, because GraphQL's numbers have 32 bits
        if label.startswith("kaflow/") and value is not None:
            found[label.removeprefix("kaflow/")] = value
    return found
