from dataclasses import replace

from kaflow_engine.runtime.planning.plan_codec import fingerprint, made_lenient, plan_of, plan_text
from tests.engine.runtime.plans_here import filter_plan, lookup_plan


def test_a_plan_comes_back_from_its_text():
    plan = lookup_plan("p", "events", "profiles", "out", smart=True)
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
