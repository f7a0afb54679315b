"""Files as a kind of source."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kaflow_engine.connectors.sources.contract import SourcePlace
from kaflow_engine.flow.origins.files import FilesParams
from kaflow_engine.formats.contract import Evidence, Format
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    from kaflow_engine.connectors.files.source.source import FilesSource

_SAMPLE = 500
"""Records of the first file that has some."""


class FilesKind:
    """Opens folders, and shows the columns of what is in them."""

    def open(self, params: FilesParams, place: SourcePlace) -> "FilesSource":
        """Open a folder."""
        from kaflow_engine.connectors.files.source.source import FilesSource

        return FilesSource(params, place)

    def check(self, params: FilesParams, connection: Mapping[str, str]) -> None:
        """Do nothing: the folder may come later, which a run waits for."""

    def sample(
        self, params: FilesParams, form: Format, connection: Mapping[str, str]
    ) -> tuple[Column, ...] | None:
        """Return the columns of the first file that can be read and has a record."""
        from kaflow_engine.connectors.files.source.contents import (
            BROKEN,
            Form,
            columns,
            values,
        )
        from kaflow_engine.connectors.files.source.storage import storage_of

        how = Form(format=params.format, header=params.header)
        storage = storage_of(params.path, connection)
        for seen in storage.look(params.path):
            try:
                if (own := columns(storage, seen.path, how)) is not None:
                    return own
                parts = values(storage, seen.path, how, 0, _SAMPLE)
                lines = [line for some in parts for line in some]
            except BROKEN:
                continue
            said = [line.as_py() for line in lines]
            found = form.columns(Evidence(sample=lambda said=said: said, schema=lambda: None))
            if found:
                return found
        return None
