"""Made-up records as a kind of source."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kaflow_engine.connectors.sources.contract import SourcePlace
from kaflow_engine.flow.sources import GeneratorParams
from kaflow_engine.formats.contract import Format
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    from kaflow_engine.connectors.generator.source import GeneratorSource


class GeneratorKind:
    """Opens generators."""

    def open(self, params: GeneratorParams, place: SourcePlace) -> "GeneratorSource":
        """Open a generator."""
        from kaflow_engine.connectors.generator.source import GeneratorSource

        return GeneratorSource(params, place)

    def check(self, params: GeneratorParams, connection: Mapping[str, str]) -> None:
        """Do nothing: it needs nothing."""

    def sample(
        self, params: GeneratorParams, form: Format, connection: Mapping[str, str]
    ) -> tuple[Column, ...] | None:
        """Return None: the columns follow from the settings."""
        return None
