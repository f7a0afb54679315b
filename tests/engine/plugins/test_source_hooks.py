"""Sources as classes with hooks: the laws of sources, and what they hear of their rows."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kaflow_engine.api.hooks import Given, SourceHooks
from kaflow_engine.connectors.hooked.calls import AnyOptions
from kaflow_engine.plugins.installed import SOURCES, loaded
from kaflow_engine.testing.source_laws import *  # noqa: F403
from kaflow_engine.testing.source_laws import PluginSubject
from tests.plugins.basic_plugin import RandomSource, row_of

CALLED: list[tuple[object, ...]] = []
"""What hooks of the test were called with."""


@pytest.fixture(autouse=True)
def nothing_called() -> None:
    CALLED.clear()


ROWS = [row_of(number) for number in range(7)]
for place, operation in ((1, "u"), (2, "d"), (4, "u"), (5, "d"), (6, "u")):
    ROWS[place]["_gs_op"] = operation


@pytest.fixture(params=["example", "frozen"])
def subject(tmp_path: Path, request: pytest.FixtureRequest, frozen_plugins: None) -> PluginSubject:
    if request.param == "frozen":
        kind = loaded(SOURCES, "frozen.counted")
        said = {"file": str(tmp_path / "said"), "count": 2}
        return PluginSubject(kind, said, [[{"n": 1}, {"n": 2}]], tmp_path)
    options = {"max_rows": 7, "record_batch_size": 3}
    return PluginSubject(RandomSource(), options, [ROWS], tmp_path)


class Fed(SourceHooks):
    """Gives what it is fed."""

    pause = 0.0
    fed: Callable[[], list[Mapping[str, Any]]]

    def generate_batch(self) -> list[Mapping[str, Any]]:
        return self.fed()

    def process_checkpoint_marker(self, epoch: int) -> str:
        CALLED.append(("marker", epoch))
        return f"behind {epoch}"

    async def process_checkpoint_finalizer(self, epoch: int) -> None:
        CALLED.append(("finalizer", epoch))

    def terminate(self) -> None:
        CALLED.append(("terminate", self.position))


class Journal:
    """Counts rows as the engine does."""

    def __init__(self) -> None:
        self.written = self.committed = 0

    def given(self, folder: Path) -> Given:
        return Given(
            name="s",
            options=AnyOptions(),
            folder=folder,
            written=lambda: self.written,
            committed=lambda: self.committed,
        )


def test_a_source_hears_what_of_its_rows_is_committed(tmp_path: Path) -> None:
    journal, rows = Journal(), [[{"n": 1}, {"n": 2}], [{"n": 3}], [], [], []]
    source = Fed().open(journal.given(tmp_path))
    source.fed = lambda: rows.pop(0) if rows else []  # pyright: ignore[reportAttributeAccessIssue]
    pieces = source.read(None)
    for committed in (0, 1, 2, 2, 3):
        piece = next(pieces)
        journal.written += len(piece.rows)
        journal.committed = committed
    next(pieces)
    pieces.close()  # pyright: ignore[reportAttributeAccessIssue]
    assert CALLED == [
        ("marker", 1),
        ("marker", 2),
        ("finalizer", 1),
        ("finalizer", 2),
        ("terminate", "behind 2"),
    ]


@pytest.mark.parametrize(
    ("after", "position", "finalized"),
    [
        ({"epoch": 4, "position": "here"}, "here", [("finalizer", 4)]),
        (17, 17, []),  # of a plugin that had no hooks before
        (None, None, []),
    ],
)
def test_a_source_goes_on_behind_its_last_rows(
    tmp_path: Path, after: Any, position: Any, finalized: list[Any]
) -> None:
    journal = Journal()
    journal.written = journal.committed = 9
    source = Fed().open(journal.given(tmp_path))
    source.fed = list  # pyright: ignore[reportAttributeAccessIssue]
    pieces = source.read(after)
    assert next(pieces).rows == ()
    assert source.position == position
    assert finalized == CALLED
