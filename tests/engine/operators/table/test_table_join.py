"""Joins of tables: after each record they have the rows that DuckDB gives for the two tables."""

# pyright: basic

import random
from itertools import permutations

import pytest

from tests.engine.operators.table.joining import CASES, Joined

pytestmark = pytest.mark.slow

FOUR = {
    "meets": [
        ("l", "1", ("7", 1)),
        ("l", "1", ("8", 2)),
        ("r", "7", ("1", 3)),
        ("r", "8", ("1", 4)),
    ],
    "moves": [("l", "7", ("7", 1)), ("r", "7", ("7", 2)), ("r", "7", ("8", 3)), ("l", "7", None)],
    "leaves": [("l", "1", ("1", 1)), ("l", "2", ("1", 2)), ("r", "1", ("2", 3)), ("r", "1", None)],
    "nothing": [
        ("l", "1", (None, 1)),
        ("r", "1", (None, 2)),
        ("l", "1", ("1", 1)),
        ("r", "1", ("1", 2)),
    ],
}


def by_key(changes):
    found = {}
    for key, values in changes:
        found.setdefault(key, []).append(values)
    return found


ORDERS = [order for four in FOUR.values() for order in permutations(four)]
IN_TASKS = [
    pytest.param(*case, spread, id="-".join([*case, "several tasks" if spread else "one task"]))
    for case in CASES
    for spread in ([False, True] if case[1] == "FULL" else [False])
]
"""In several tasks those that know of both sides which rows have no match."""


def apart(place, of, key, values):
    """A record in a world of its own: no two worlds have a key in common."""
    if values is None:
        return of, f"{place}.{key}", None
    k, v = values
    return of, f"{place}.{key}", (k and f"{place}.{k}", v)


@pytest.mark.parametrize(("key", "kind", "spread"), IN_TASKS)
def test_every_order_of_four_records_gives_the_rows_of_sql(key, kind, spread):
    worlds = [[apart(n, *one) for one in order] for n, order in enumerate(ORDERS)]
    run = Joined(key, kind, spread=spread)
    at_once, one_by_one = worlds[::2], worlds[1::2]
    batches = [[*zip(*at_once, strict=True)], *([wave] for wave in zip(*one_by_one, strict=True))]
    for waves in batches:
        found, wanted = run.feed(*waves)
        assert by_key(found) == by_key(wanted)


@pytest.mark.parametrize("own", [False, True], ids=["two topics", "one topic"])
@pytest.mark.parametrize(("key", "kind"), CASES)
def test_any_cut_gives_the_rows_of_sql(key, kind, own):
    chance = random.Random(f"{key} {kind} {own}")
    each = chance.random() < 0.5
    run = Joined(key, kind, each=each, own=own, spread=chance.random() < 0.5)
    for _ in range(2):
        given = [
            (
                chance.choice(run.topics),
                chance.choice("1234"),
                chance.choice([None, *((k, v) for k in ("1", "2", "3", None) for v in (1, 2))]),
            )
            for _ in range(chance.randint(1, 7))
        ]
        found, wanted = run.feed(*([one] for one in given))
        if each:
            assert by_key(found) == by_key(wanted)
        assert each or len(by_key(found)) == len(found)
    left = [(of, key, None) for of in dict.fromkeys(run.topics) for key in "1234"]
    run.feed(left)
    assert run.run.entries == 0
