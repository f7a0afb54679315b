from dataclasses import replace

import pytest

from kaflow_engine.flow.graph import with_avro_ids
from kaflow_engine.flow.numbers import renumbered
from kaflow_engine.runtime.planning.plan_codec import (
    decided,
    fingerprint,
    made_lenient,
    plan_of,
    plan_text,
)
from tests.engine.plan.evolution import CHANGES, Change
from tests.engine.plan.evolution import plan_of as plan_after
from tests.engine.plan.test_numbering import plan_with
from tests.engine.runtime.plans_here import filter_plan, lookup_plan
from tests.engine.transforms.handler_here import pipeline_plan


def test_a_plan_comes_back_from_its_text():
    plan = lookup_plan("p", "events", "profiles", "out", smart=True)
    assert plan_of(plan_text(plan)) == plan


@pytest.mark.parametrize("change", CHANGES, ids=[change.title for change in CHANGES])
def test_every_plan_comes_back_from_its_text(change: Change) -> None:
    for after in (False, True):
        plan = plan_after(change, after=after)
        assert plan_of(plan_text(plan)) == plan


def test_only_equal_plans_have_one_fingerprint():
    plan = filter_plan("p", "events", "out")
    assert fingerprint(plan) == fingerprint(filter_plan("p", "events", "out"))
    assert fingerprint(plan) != fingerprint(replace(plan, partitions=3))


def test_a_batch_that_was_refused_follows_the_new_word():
    plan = lookup_plan("p", "a", "b", "o")
    strict = replace(plan, sources=tuple(replace(t, on_error="fail") for t in plan.sources))
    assert made_lenient(strict, plan) == plan
    skipping = replace(plan, sources=tuple(replace(t, on_error="skip") for t in plan.sources))
    assert made_lenient(skipping, plan) == skipping


def test_a_batch_that_was_not_answered_asks_where_the_author_says_now():
    old, new = pipeline_plan("http://typo/x"), pipeline_plan("http://right/x", batch=9)
    assert plan_of(plan_text(old)) == old
    assert made_lenient(old, new) == new
    without = lookup_plan("p", "a", "b", "o")
    assert made_lenient(old, without) == old


def test_the_text_of_a_plan_of_one_chain_stays():
    """States have it, and batches name its fingerprint."""
    plan = lookup_plan("p", "events", "profiles", "out")
    text = plan_text(plan)
    assert '"chain"' not in text
    assert '"retired"' not in text
    later = renumbered(replace(plan, retired=(0,)), {0: 1})
    assert '"chain":1' in plan_text(later)
    assert plan_of(plan_text(later)) == later


def test_the_text_of_a_plan_whose_keys_have_no_schema_stays():
    plan = filter_plan("p", "events", "out")
    assert "key_schema" not in plan_text(plan)
    (sink,) = plan.sinks
    with_keys = replace(plan, sinks=(replace(sink, key_schema="{}", key_schema_id=7),))
    assert '"key_schema":"{}","key_schema_id":7' in plan_text(with_keys)
    assert plan_of(plan_text(with_keys)) == with_keys


OUTPUTS = {"o": "SELECT e.id, e.n FROM events e", "q": "SELECT c.id, c.n FROM clicks c"}


def test_a_decision_names_all_chains_of_a_plan():
    plan = plan_with(OUTPUTS)
    assert plan_of(plan_text(plan)) == plan
    marks = {
        mark(other)
        for mark in (decided, fingerprint)
        for other in (
            plan,
            plan_with({**OUTPUTS, "q": "SELECT c.id, c.n FROM clicks c WHERE c.n > 1"}),
            plan_with({"o": OUTPUTS["o"]}),
            plan_with({"o": f"{OUTPUTS['o']} UNION ALL {OUTPUTS['q']}"}),
            renumbered(plan, {1: 4}),
        )
    }
    assert len(marks) == 10
    with_ids = with_avro_ids(plan, {sink.id: 7 for sink in plan.sinks}, {})
    assert decided(with_ids) == decided(plan)
