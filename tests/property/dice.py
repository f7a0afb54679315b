"""Random choices from a seed: cheap to draw, the same on every machine."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Choices for one scenario."""

    def __init__(self, seed: int | str) -> None:
        self._random = Random(seed)

    def pick(self, items: Sequence[T]) -> T:
        """Choose one; what stands twice comes twice as often."""
        return items[int(self._random.random() * len(items))]

    def some(self, items: Sequence[T], most: int) -> list[T]:
        """Choose up to `most` different ones."""
        return self._random.sample(items, self.number(0, min(most, len(items))))

    def number(self, least: int, most: int) -> int:
        """Choose a number; both ends are possible."""
        return self._random.randint(least, most)

    def one_in(self, count: int) -> bool:
        """Tell whether something rare happens."""
        return self._random.random() * count < 1
