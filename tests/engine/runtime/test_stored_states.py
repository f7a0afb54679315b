"""States that an earlier version wrote, with a batch left open: they go on to the same rows.

Beside each state stands what that version itself delivered from the open batch on.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from kaflow_engine.flow.graph import state_names
from kaflow_engine.runtime.planning.plan_codec import fingerprint, plan_text
from tests.engine.runtime.state_here import StateHere, random_batches, state_plan

FOLDER = Path(__file__).parents[2] / "fixtures" / "stored_states"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
SEED, BATCHES, OPEN = 7, 6, 3
"""The records that were read, and how many batches were committed."""


def adopted(here, plan):
    """Note a plan in the form of this version, as a start does."""
    here.log.save_plan(fingerprint(plan), plan_text(plan))
    here.log.replace_state(replace(here.state, fingerprint=fingerprint(plan)))


@pytest.mark.parametrize("name", NAMES)
def test_a_state_goes_on_to_the_same_rows(name, tmp_path):
    expected = json.loads((FOLDER / f"{name}.json").read_text())
    joins = expected["plan"].pop("joins")
    plan = state_plan(*joins, name=name, **expected["plan"])
    shutil.copytree(FOLDER / name, tmp_path / name)
    here = StateHere(tmp_path, plan)
    assert here.plan == plan
    batches = random_batches(SEED, plan, BATCHES)
    here.finish(here.log.open_batch(), batches[OPEN][0])
    adopted(here, plan)
    for records, at in batches[OPEN + 1 :]:
        here.run(records, at)
    rows = {
        key.decode(): [value.decode() for value in values] for key, values in here.output.items()
    }
    assert rows == expected["output"]
    assert here.standing.counters == expected["counters"]
    wrote = {file.name.split("-")[0] for file in (tmp_path / name / "changes").glob("[456]/*")}
    assert wrote
    assert wrote <= {str(state) for state in state_names(plan)}
