"""Where journals are."""

from pathlib import Path

_ENDED = "ended"
JOURNALS = ".journals"
"""The folder of all journals, beside the states: a state that goes leaves what was acknowledged."""


def journal_folder(root: Path, pipeline_id: str, source: str) -> Path:
    """Return where the journal of a source is, below the folder of all states."""
    return root / JOURNALS / pipeline_id / source


def ended_by(folder: Path) -> str | None:
    """Return the kind of source that has given a journal all it ever will; None: more may come."""
    mark = folder / _ENDED
    return mark.read_text() if mark.exists() else None


def mark_ended(folder: Path, kind: str | None) -> None:
    """Note which kind of source has given a journal all it ever will; None: more may come."""
    if kind is None:
        (folder / _ENDED).unlink(missing_ok=True)
    else:
        (folder / _ENDED).write_text(kind)
