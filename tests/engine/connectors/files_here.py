"""A folder, with what runs do there."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from kaflow_engine.connectors.contract import FinishedBatch, Output, Owner, TaskPart
from kaflow_engine.connectors.files.outputs import FolderOutlet
from kaflow_engine.duck.queries import query
from kaflow_engine.flow.records import EVENT_TIME, SLOT
from kaflow_engine.model.columns import Column
from kaflow_engine.model.outputs.sink_specs import FilesSpec
from tests.acceptance.bucket_here import KEYS, NAME, Store

OWNER = Owner(state="ab12", generation=1, epoch=1)


class Files:
    """A folder, with what runs do there."""

    def __init__(
        self,
        warehouse: Path,
        columns: dict[str, str],
        reached: dict[str, str] | None = None,
        **said: Any,
    ) -> None:
        spec = FilesSpec.model_validate({"type": "files", "folder": "out", **said})
        self.folder = warehouse / "out"
        self.outlet = FolderOutlet()
        self.output = Output(
            name=spec.target,
            place=spec.target,
            columns=tuple(Column(*each) for each in columns.items()),
            settings=spec.settings,
            connection={"warehouse": str(warehouse), **(reached or {})},
        )

    def rows(self, values: str, slot: int = 0, at: int = 0) -> pa.Table:
        """Return rows of the SQL of some, such as `(1, 'a'), (2, 'b')`."""
        names = ", ".join(f'"{column.name}"' for column in self.output.columns)
        typed = ", ".join(
            f'CAST("{c.name}" AS {c.type}) AS "{c.name}"' for c in self.output.columns
        )
        return query(
            f'SELECT {typed}, {slot}::INTEGER AS "{SLOT}", {at}::BIGINT AS "{EVENT_TIME}" '
            f"FROM (VALUES {values}) t({names})"
        )

    def batch(self, number: int, *tasks: pa.Table, owner: Owner = OWNER) -> FinishedBatch:
        task = self.outlet.task(self.output, owner)
        written = [task.write(TaskPart(rows=r, batch=number, epoch=owner.epoch)) for r in tasks]
        self.refused = [one for each in written for one in each.refused]
        return FinishedBatch(
            number=number, mark="m", notes=[note for each in written for note in each.notes]
        )

    def open(self, owner: Owner = OWNER) -> Any:
        return self.outlet.open(self.output, pa.schema([]), owner, None)

    def names(self) -> list[str]:
        """Return all files that a reader may meet."""
        found = (p for p in self.folder.rglob("*") if p.is_file())
        return sorted(str(p.relative_to(self.folder)) for p in found if "_kaflow" not in p.parts)

    def tries(self) -> list[Path]:
        return list((self.folder / "_kaflow" / "tries").glob("*"))


class FilesOfBucket(Files):
    """A folder of a bucket, with what runs do there."""

    def __init__(self, store: Store, name: str, columns: dict[str, str], **said: Any) -> None:
        reached = {**KEYS, "endpoint": store.endpoint}
        super().__init__(Path(), columns, reached, **{"folder": f"s3://{NAME}/{name}", **said})
        self.bucket = store.bucket(name)

    def names(self) -> list[str]:
        """Return all objects that a reader may meet."""
        return sorted(name for name in self.bucket.sizes("") if "_kaflow" not in name.split("/"))

    def uploads(self) -> list[str]:
        """Return names that are waited for."""
        return [name for name, _ in self.bucket.staged()]

    def texts(self) -> list[str]:
        """Return the content of each object, by name."""
        return [found[0].decode() for name in self.names() if (found := self.bucket.get(name))]
