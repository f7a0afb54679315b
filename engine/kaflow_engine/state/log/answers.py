"""What outside systems answered in a batch, beside its log."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import pyarrow as pa

from kaflow_engine.state.kept import KEPT
from kaflow_engine.state.reader import StateRef
from kaflow_engine.state.storage.sealed import damaged, seal, unseal
from kaflow_engine.state.storage.store import Store

_DIGEST = 32


class KeptAnswers:
    """The answers of one batch, as files of its log; whichever run asked, they are those.

    Args:
        store: That of the log.
        state: Whose batch it is.
        batch: Its number.
        epoch: Of the run that asks.
    """

    def __init__(self, store: Store, state: StateRef, batch: int, epoch: int = 0) -> None:
        self._store, self._batch, self._epoch = store, batch, epoch
        self._of = {"state_id": state.state_id, "generation": state.generation}

    def kept(self, name: str) -> Mapping[str, Any] | None:
        """Return an answer that an earlier try of the batch has kept; None: there is none.

        Raises:
            Damaged: It was altered.
        """
        file = self._file(name) + ".json"
        if not self._store.exists(file):
            return None
        found = unseal(file, self._store.get(file))
        mine = all(found.get(key) == value for key, value in self._of.items())
        return found["answer"] if mine and found["name"] == name else None

    def keep(self, name: str, answer: Mapping[str, Any]) -> None:
        """Keep an answer, durably."""
        data = seal({**self._of, "name": name, "answer": answer})
        self._store.put(self._file(name) + ".json", data)

    def kept_rows(self, name: str) -> pa.Table:
        """Return the answers about rows that tries of the batch have kept: schema KEPT.

        Where a key stands twice, the first row counts, which is of the newest run: it has asked
        because an earlier one, which may have lived on, had not kept its answer yet.

        Raises:
            Damaged: They were altered.
        """
        files = self._store.list(f"{self._file(name)}.")
        newest_first = sorted(files, key=lambda file: -int(file.split(".")[1]))
        tables = [self._read(file, name) for file in newest_first]
        return pa.concat_tables([KEPT.empty_table(), *(t for t in tables if t is not None)])

    def keep_rows(self, name: str, rows: pa.Table) -> None:
        """Keep answers about rows, durably, beside those that are kept: schema KEPT."""
        about = {key: str(value) for key, value in {**self._of, "name": name}.items()}
        sink = pa.BufferOutputStream()
        table = rows.replace_schema_metadata(about)
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
            writer.write_table(table)
        data = sink.getvalue().to_pybytes()
        digest = sha256(data)
        file = f"{self._file(name)}.{self._epoch}.{digest.hexdigest()[:16]}.arrow"
        self._store.put(file, digest.digest() + data)

    def _read(self, file: str, name: str) -> pa.Table | None:
        data = self._store.get(file)
        if sha256(data[_DIGEST:]).digest() != data[:_DIGEST]:
            raise damaged(file)
        table = pa.ipc.open_stream(data[_DIGEST:]).read_all()
        about = table.schema.metadata or {}
        of = {key.decode(): value.decode() for key, value in about.items()}
        mine = {key: str(value) for key, value in {**self._of, "name": name}.items()}
        return table.replace_schema_metadata(None) if of == mine else None

    def _file(self, name: str) -> str:
        return f"answers/{self._batch}/{sha256(name.encode()).hexdigest()[:16]}"
