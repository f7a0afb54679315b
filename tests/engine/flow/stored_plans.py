"""Plans as earlier versions stored them, each beside the pipeline it was made from."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kaflow_engine.errors import Location
from kaflow_engine.flow.flow import Flow
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.plan.planner.pipeline_plan import build_plan

FOLDER = Path(__file__).parents[2] / "fixtures" / "stored_plans"
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.json")))


@dataclass(frozen=True)
class StoredPlan:
    """A plan as it was stored, and what was known of it."""

    plan: dict[str, Any]
    """A chain: driving side, steps, finish."""
    decided: str
    """The fingerprint that decisions name."""
    flow: Flow
    """What the same pipeline file is planned as now."""

    @property
    def text(self) -> str:
        """The plan, to the letter."""
        return json.dumps(self.plan, separators=(",", ":"), ensure_ascii=False)


@cache
def stored_plan(name: str) -> StoredPlan:
    """Read one."""
    found = json.loads((FOLDER / f"{name}.json").read_text())
    spec = pipeline_from_mapping(found["file"], Location("p"), {})
    schemas = {
        topic: tuple(Column(*column) for column in columns.items())
        for topic, columns in found["columns"].items()
    }
    flow = build_plan(spec, Config(warehouse="/srv/warehouse"), schemas).plan
    return StoredPlan(plan=found["plan"], decided=found["decided"], flow=flow)
