"""A partition behind changes of the batch that runs reads as one to which they were applied."""

from pathlib import Path
from random import Random

import pytest

from kaflow_engine.state.changed import Changed
from kaflow_engine.state.copies.rocks_open import open_copy
from kaflow_engine.state.log.changes import to_changes
from kaflow_engine.state.reader import StateRef, successor


def _key(dice: Random) -> bytes:
    return bytes(dice.choice(b"\x01a\xff") for _ in range(dice.randint(1, 4)))


@pytest.mark.parametrize("seed", range(20))
def test_it_reads_as_one_with_the_changes(tmp_path: Path, seed: int) -> None:
    dice = Random(seed)
    stored = {_key(dice): b"old" for _ in range(30)}
    changes = {_key(dice): dice.choice([None, b"new"]) for _ in range(dice.choice([0, 1, 5, 20]))}
    prefixes = [_key(dice)[: dice.randint(0, 2)] for _ in range(10)]
    with (
        open_copy(tmp_path / "before", StateRef("s", 1)) as before,
        open_copy(tmp_path / "behind", StateRef("s", 1)) as behind,
    ):
        for copy in (before, behind):
            copy.apply(to_changes(list(stored), list(stored.values())), 1)
        behind.apply(to_changes(list(changes), list(changes.values())), 2)
        changed = Changed(before, changes)
        asked = [_key(dice) for _ in range(20)]
        assert changed.get(asked) == behind.get(asked)
        assert changed.scan(prefixes) == behind.scan(prefixes)
        assert changed.scan([]) == behind.scan([])
        for prefix in prefixes:
            for most in (None, 1, 3, 100):
                found = changed.range(prefix, successor(prefix), most)
                assert found == behind.range(prefix, successor(prefix), most)
