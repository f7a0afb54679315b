"""Files of a folder as a phase: those that are there, once none of them may still be written."""

from kaflow_engine.connectors.files.source.source import FilesSource


class FilesOnce(FilesSource):
    """A source of files that ends with what one look at the folder has found."""

    finite = True

    @property
    def bounded(self) -> bool:
        """Whether it was looked, and all that was there is whole."""
        return self.is_whole
