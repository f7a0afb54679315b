"""Where outside systems are and how to log in, as the configuration says; never printed."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Connections:
    """The connections of a configuration; travels to tasks with their other secrets."""

    known: Mapping[tuple[str, str], Mapping[str, str]] = field(
        default_factory=dict[tuple[str, str], Mapping[str, str]], repr=False
    )
    """(kind of sink, name) → its settings; `secrets` → those of the configuration by name."""

    def of(self, kind: str, name: str | None) -> Mapping[str, str]:
        """Return the settings of a connection; none of a kind of sink that needs no connection."""
        return self.known.get((kind, name or ""), {})
