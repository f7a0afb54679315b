"""The oracle keeps its own laws, and a scenario written down means the same when read again."""

# pyright: basic

from pathlib import Path

import pytest
import yaml

from tests.property.render import to_case, to_yaml
from tests.property.strategies import random_scenario
from tests.reference.case import differences, run_case
from tests.reference.interpreter import CLASSES

SEEDS = [range(at, at + 50) for at in range(0, 200, 50)]

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("seeds", SEEDS, ids=str)]


def test_every_driving_record_is_in_one_class(seeds: range) -> None:
    for seed in seeds:
        said = random_scenario(seed).interpret()
        for result in said.results:
            counters = result.counters
            assert counters["read"] == sum(counters[name] for name in (*CLASSES, "used")), seed
            assert all(count >= 0 for count in counters.values()), seed
        for chain in zip(*(result.watermarks for result in said.results), strict=True):
            marks = [mark for mark in chain if mark is not None]
            assert marks == sorted(marks), seed


def test_a_written_scenario_is_read_back(seeds: range) -> None:
    for seed in seeds:
        scenario = random_scenario(seed)
        said = scenario.interpret()
        if said.stops:
            continue
        (case,) = yaml.load(to_yaml(to_case(scenario)), yaml.CSafeLoader)
        ran = run_case(case, Path())
        assert differences(case, ran) == [], seed
        assert ran.batches == said.batches, seed


def test_the_same_seed_gives_the_same_run(seeds: range) -> None:
    for seed in seeds:
        once, again = random_scenario(seed), random_scenario(seed)
        assert once == again
        assert once.interpret() == again.interpret(), seed
