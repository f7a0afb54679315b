"""Positions in topics that another program keeps: where it has come to, and where ours go too."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionParams:
    """What is known of the program whose topics a pipeline reads."""

    readers: tuple[tuple[str, tuple[str, ...]], ...]
    """Topic → what that program calls its sources of it."""
    namespace: str = ""
    """What it is called in the table."""
    table: Literal["postgres", "sqlite"] | None = None
    """A table that has its positions, where ours are written, too; None: it has none."""
    group: str | None = None
    """Its consumer group; None: it has none that is known."""

    def keys(self, topic: str, partition: int) -> tuple[str, ...]:
        """Return under which keys of the table a position stands.

        >>> PositionParams(readers=(("shop.orders", ("orders",)),)).keys("shop.orders", 3)
        ('orders:shop.orders:3',)
        """
        return tuple(f"{name}:{topic}:{partition}" for name in dict(self.readers)[topic])

    @property
    def groups(self) -> tuple[tuple[str, str], ...]:
        """The consumer groups that may have read topics, each with the topic, the likeliest first.

        >>> PositionParams(readers=(("t", ("orders",)),), group="shop").groups
        (('shop-orders', 't'), ('shop', 't'))
        """
        if self.group is None:
            return ()
        of_sources = (
            (f"{self.group}-{name}", topic) for topic, names in self.readers for name in names
        )
        return (*of_sources, *((self.group, topic) for topic, _ in self.readers))
