"""What a folder says of its files: whose it is, and which batch was the last.

The ledger is written before files get their names, so that whatever is visible is known there.
Only the newest run may replace it.
"""

import json
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace

from kaflow_engine.connectors.contract import Owner
from kaflow_engine.connectors.files.errors import FolderUnfit
from kaflow_engine.connectors.files.place import LEDGER, LedgerChanged, Place
from kaflow_engine.connectors.holding import Holding
from kaflow_engine.errors import SinkAway, TakenOver

_TRIES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The last batch of the state that a folder belongs to."""

    state: str
    generation: int
    epoch: int
    batch: int = 0
    mark: str = ""
    files: Mapping[str, int] = field(default_factory=dict[str, int])
    """Of the batch: name below the folder → rows."""
    staged: Mapping[str, str] = field(default_factory=dict[str, str])
    """Name → what it is known by until it is published: all that a run may still publish."""

    def is_of(self, owner: Owner) -> bool:
        """Tell whether it is of a state."""
        return (self.state, self.generation) == (owner.state, owner.generation)


class Ledger:
    """The ledger of one folder."""

    def __init__(self, place: Place, called: str, owner: Owner) -> None:
        self._place, self._called, self._owner = place, called, owner
        self._tag: str | None = None

    def entry(self) -> Entry | None:
        """Return what it says; None: no run has begun there.

        Raises:
            FolderUnfit: It is damaged.
        """
        found = self._place.read_ledger()
        if found is None:
            self._tag = None
            return None
        content, self._tag = found
        try:
            return Entry(**json.loads(content))
        except (ValueError, TypeError) as error:
            raise FolderUnfit(
                f"'{self._place}/{LEDGER}' is damaged",
                hint="restore it, or give the output another folder",
            ) from error

    def holdings(self) -> tuple[Holding, ...]:
        """Return what the folder holds, from whatever state."""
        found = self.entry()
        if found is None:
            return ()
        return (
            Holding(
                state=found.state,
                generation=found.generation,
                batch=found.batch,
                mark=found.mark,
                table=self._called,
                kept_in="folder",
            ),
        )

    def begin(self) -> None:
        """Make the folder that of a run: no earlier one adds anything from now on.

        What tasks of other runs have left is removed.

        Raises:
            TakenOver: A newer run has begun.
        """
        with self._place.exclusive():
            self._place.begin(self._owner, self._replace(self._begun).staged)

    def hand_over(self) -> None:
        """Make the folder that of another state: whoever had it can add no more."""
        with self._place.exclusive():
            self._replace(lambda found: self._nothing(0, found))

    def _begun(self, found: Entry | None) -> Entry:
        owner = self._owner
        if found is not None and found.epoch > owner.epoch:
            raise self._taken_over()
        if found is None or not found.is_of(owner):
            return self._nothing(owner.epoch, found)
        return replace(found, epoch=owner.epoch)

    def _nothing(self, epoch: int, found: Entry | None) -> Entry:
        """Return that nothing is there of the state; what others staged is to be removed yet."""
        owner = self._owner
        new = Entry(state=owner.state, generation=owner.generation, epoch=epoch)
        return new if found is None else replace(new, staged=found.staged)

    def _replace(self, new: Callable[[Entry | None], Entry]) -> Entry:
        """Write what follows from what is there, also where a run writes that is to be replaced."""
        for _ in range(_TRIES):
            entry = new(self.entry())
            try:
                self._write(entry)
            except LedgerChanged:
                continue
            return entry
        raise SinkAway(f"other runs write '{self._place}/{LEDGER}' all the time")

    @contextmanager
    def held(self) -> Generator[Entry]:
        """Give what it says to the newest run, and let no other begin until the end of the block.

        Raises:
            TakenOver: Another run has begun.
        """
        with self._place.exclusive():
            yield self.require_newest()

    def require_newest(self) -> Entry:
        """Return what it says to the newest run.

        Raises:
            TakenOver: Another run has begun.
        """
        found = self.entry()
        if found is None or not found.is_of(self._owner) or found.epoch != self._owner.epoch:
            raise self._taken_over()
        return found

    def write(self, entry: Entry) -> None:
        """Replace what was read, at once and for good.

        Raises:
            TakenOver: Another run has written meanwhile.
        """
        try:
            self._write(entry)
        except LedgerChanged as error:
            raise self._taken_over() from error

    def _write(self, entry: Entry) -> None:
        self._tag = self._place.write_ledger(json.dumps(asdict(entry)).encode(), self._tag)

    def _taken_over(self) -> TakenOver:
        return TakenOver(
            f"another run has taken over folder '{self._called}'",
            hint="a pipeline has one run at a time; stop this one",
        )
