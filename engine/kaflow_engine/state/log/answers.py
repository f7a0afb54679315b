"""What outside systems answered in a batch, beside its log."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from kaflow_engine.state.reader import StateRef
from kaflow_engine.state.storage.sealed import seal, unseal
from kaflow_engine.state.storage.store import Store


class KeptAnswers:
    """The answers of one batch, as files of its log; whichever run asked, they are those."""

    def __init__(self, store: Store, state: StateRef, batch: int) -> None:
        self._store, self._batch = store, batch
        self._of = {"state_id": state.state_id, "generation": state.generation}

    def kept(self, name: str) -> Mapping[str, Any] | None:
        """Return an answer that an earlier try of the batch has kept; None: there is none.

        Raises:
            Damaged: It was altered.
        """
        file = self._file(name)
        if not self._store.exists(file):
            return None
        found = unseal(file, self._store.get(file))
        mine = all(found.get(key) == value for key, value in self._of.items())
        return found["answer"] if mine and found["name"] == name else None

    def keep(self, name: str, answer: Mapping[str, Any]) -> None:
        """Keep an answer, durably."""
        self._store.put(self._file(name), seal({**self._of, "name": name, "answer": answer}))

    def _file(self, name: str) -> str:
        return f"answers/{self._batch}/{sha256(name.encode()).hexdigest()[:16]}.json"
