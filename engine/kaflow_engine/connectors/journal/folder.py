"""Where journals are."""

from pathlib import Path

JOURNALS = ".journals"
"""The folder of all journals, beside the states: a state that goes leaves what was acknowledged."""


def journal_folder(root: Path, pipeline_id: str, source: str) -> Path:
    """Return where the journal of a source is, below the folder of all states."""
    return root / JOURNALS / pipeline_id / source
