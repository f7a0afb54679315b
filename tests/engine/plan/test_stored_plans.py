"""Plans that earlier versions stored: read as flows, and compared with what is planned now."""

import json

import pytest

from kaflow_engine.errors import StateError
from kaflow_engine.plan.evolution.chain import document_of
from kaflow_engine.plan.evolution.diff import obstacles
from kaflow_engine.plan.evolution.evolution import inherit, migrations
from kaflow_engine.plan.evolution.start_decision import StoredState, judge, pinned_schema_ids
from kaflow_engine.runtime.planning.plan_codec import decided, fingerprint, plan_of, plan_text
from kaflow_engine.state.log.batch_log import BatchLog, StateRecord, plan_mark
from kaflow_engine.state.storage.store import LocalStore
from tests.engine.flow.stored_plans import NAMES, stored_plan


def state_of(text: str) -> StateRecord:
    return StateRecord(
        state_id="s",
        generation=1,
        partitions=4,
        created_ms=0,
        start={},
        dimension_ends={},
        schemas={},
        fingerprint=plan_mark(text),
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_plan_is_the_flow_that_its_file_is_planned_as(name: str) -> None:
    stored = stored_plan(name)
    assert plan_of(stored.text) == stored.flow


@pytest.mark.parametrize("name", NAMES)
def test_a_flow_comes_back_from_its_text(name: str) -> None:
    flow = stored_plan(name).flow
    assert plan_of(plan_text(flow)) == flow
    assert fingerprint(flow) == plan_mark(plan_text(flow))


@pytest.mark.parametrize("name", NAMES)
def test_the_form_in_which_plans_are_compared_stays(name: str) -> None:
    stored = stored_plan(name)
    assert plan_text(stored.flow) != stored.text
    assert list(document_of(stored.flow)) == list(stored.plan)
    assert decided(stored.flow) == stored.decided


@pytest.mark.parametrize("name", NAMES)
def test_a_state_of_a_stored_plan_goes_on(name: str) -> None:
    stored = stored_plan(name)
    old = plan_of(stored.text)
    assert inherit(old, stored.flow) == stored.flow
    assert obstacles(old, stored.flow) == ()
    assert migrations(old, stored.flow) == ()


@pytest.mark.parametrize("name", NAMES)
def test_a_preview_of_a_stored_plan_says_that_nothing_changed(name: str, tmp_path) -> None:
    stored = stored_plan(name)
    found = StoredState(directory=tmp_path, state=state_of(stored.text), committed=3)
    verdict = judge(found, plan_of(stored.text), stored.flow)
    assert (verdict.status, verdict.reasons, verdict.batch) == ("unchanged", (), 4)


def test_pinned_schemas_are_found_in_both_forms(tmp_path) -> None:
    stored = stored_plan("look_up")
    topics = [{**stored.plan["topics"][0], "schema_id": 7}, *stored.plan["topics"][1:]]
    old = {**stored.plan, "topics": topics}
    for place, plan in enumerate((old, {"sources": topics, "operators": []})):
        log = BatchLog(LocalStore(tmp_path / str(place)))
        mark = plan_mark(json_text := json.dumps(plan))
        log.save_plan(mark, json_text)
        state = StoredState(directory=tmp_path / str(place), state=state_of(json_text))
        assert pinned_schema_ids(state) == {topics[0]["name"]: 7}


@pytest.mark.parametrize("text", ["", "{}", '{"steps": []}', '{"operators": [], "sources": []}'])
def test_a_plan_of_another_version_is_refused(text: str) -> None:
    with pytest.raises(StateError, match="another version of kaflow wrote it"):
        plan_of(text)


def test_a_stored_plan_whose_output_had_no_key_goes_on_and_its_key_is_said(tmp_path) -> None:
    stored = stored_plan("without_key/filter")
    old = plan_of(stored.text)
    assert old != stored.flow
    found = StoredState(directory=tmp_path, state=state_of(stored.text), committed=3)
    verdict = judge(found, old, inherit(old, stored.flow))
    assert (verdict.status, verdict.batch) == ("kept", 4)
    assert verdict.reasons == (
        "exchange by output key is on, was off",
        "topic 'a': key of the record was added (BLOB)",
        "output: key is that of the record, was not set",
        "output: key of the record was added (BLOB a.$key)",
    )
