"""What a front end would say better in a pipeline, although it is right."""

from dataclasses import dataclass

from kaflow_engine.errors import Location, SqlError


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """Something that could be said better."""

    said: str
    at: Location
    hint: str

    @property
    def notice(self) -> SqlError:
        """As it is shown."""
        return SqlError(self.said, self.at, self.hint)
