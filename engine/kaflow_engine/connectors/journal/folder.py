"""Where journals are, and whether they have ended."""

from pathlib import Path

from kaflow_engine.state.storage.store import LocalStore

_ENDED = "ended"
JOURNALS = ".journals"
"""The folder of all journals, beside the states: a state that goes leaves what was acknowledged."""


def journal_folder(root: Path, pipeline_id: str, source: str) -> Path:
    """Return where the journal of a source is, below the folder of all states."""
    return root / JOURNALS / pipeline_id / source


def ended_by(folder: Path) -> str | None:
    """Return the kind of source that has given a journal all it ever will; None: more may come."""
    try:
        return (folder / _ENDED).read_text()
    except FileNotFoundError:
        return None


def mark_ended(folder: Path, kind: str | None) -> None:
    """Note which kind of source has given a journal all it ever will; None: more may come.

    Raises:
        StateError: It cannot be written.
    """
    store = LocalStore(folder)
    if kind is None:
        store.delete(_ENDED)
    else:
        store.put(_ENDED, kind.encode())
