"""Commits to a Delta table: one a batch, or all that a backfill replaces at once."""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false
# pyarrow is untyped

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Field, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError

from kaflow_engine.connectors.delta_files import Action, Replaced, Replacement, add_action
from kaflow_engine.connectors.table_files import TableFile
from kaflow_engine.errors import SinkError

_WRITER = "kaflow.writer"
"""In the information of a commit: the state, and its generation, that the batch belongs to."""

_BACKFILL = "kaflow.backfill"
"""The same, of a backfill."""

_TRIES = 20
"""How often a backfill may lose to other writers of the table in a row."""

_LOOKED_BACK = 1000
"""Commits, newest first."""

_SETTINGS = {"delta.checkpointInterval": "100", "delta.logRetentionDuration": "interval 7 days"}


class DeltaSink:
    """A table with one writer that streams; backfills may replace rows beside it."""

    def __init__(self, folder: Path, schema: pa.Schema, column: str, writer: str) -> None:
        """Create the table unless it is there, and add columns that it lacks.

        Args:
            folder: Where it is.
            schema: All of its columns.
            column: The one by which it is partitioned.
            writer: Whose batches are counted: the state and its generation.

        Raises:
            SinkError: It cannot be created or opened, or has columns of other types.
        """
        self._folder, self._column, self._writer = folder, column, writer
        with _told(folder):
            self._table = _opened(folder, schema, column)
            self._schema = self._table.schema()

    def committed(self) -> int:
        """Return the last batch of this writer; 0 before the first."""
        with _told(self._folder):
            self._table.update_incremental()
            return self._table.transaction_version(self._writer) or 0

    def other_writer(self) -> str | None:
        """Return who else has added batches, if this writer has not added any yet."""
        if self.committed():
            return None
        with _told(self._folder):
            history = self._table.history(_LOOKED_BACK)
        appends = (commit for commit in history if _is_append(commit))
        return next((commit[_WRITER] for commit in appends if _WRITER in commit), None)

    def add(self, batch: int, files: Sequence[TableFile]) -> bool:
        """Add the files of a batch, unless the table has that batch; say whether they were added.

        Raises:
            SinkError: Another run of the pipeline writes, or the table cannot be written.
        """
        if self.committed() >= batch:
            self._remove(files)
            return False
        with _told(self._folder):
            self._commit(
                [add_action(file, self._column) for file in files],
                Transaction(self._writer, batch),
                {_WRITER: self._writer},
            )
        return True

    def check_known(self, replaced: Replaced) -> None:
        """Refuse to replace rows of which nothing says what record they were made of.

        Raises:
            SinkError: The table cannot be read.
            StateError: There are some.
        """
        with _told(self._folder):
            Replacement(self._folder, self._column, replaced).check_known(self._table)

    def replace(self, replaced: Replaced, files: Sequence[TableFile]) -> None:
        """Put files in the place of rows, in one commit; every other row stays.

        The commit follows the very version of the table in which the rows were found. If another
        writer was faster, they are looked for again.

        Raises:
            SinkError: The table cannot be written, or changes all the time.
            StateError: Rows do not name the record they were made of.
        """
        replacement = Replacement(self._folder, self._column, replaced)
        added = [add_action(file, self._column) for file in files]
        with _told(self._folder):
            for tries_left in reversed(range(_TRIES)):
                if self.committed():
                    return
                try:
                    return self._commit(
                        [*replacement.actions(self._table), *added],
                        Transaction(self._writer, 1),
                        {_BACKFILL: self._writer},
                        retries=0,
                    )
                except CommitFailedError:
                    if not tries_left:
                        raise

    def _commit(
        self,
        actions: Sequence[Action],
        transaction: Transaction,
        about: dict[str, str],
        retries: int | None = None,
    ) -> None:
        self._table.create_write_transaction(
            list(actions),
            mode="append",  # the one that takes what is removed by name
            schema=self._schema,
            partition_by=[self._column],
            commit_properties=CommitProperties(
                custom_metadata=about,
                max_commit_retries=retries,
                app_transactions=[transaction],
            ),
        )

    def _remove(self, files: Sequence[TableFile]) -> None:
        for file in files:
            (self._folder / file.path).unlink(missing_ok=True)


def read_partitions(folder: Path, partitions: Sequence[str]) -> pa.Table:
    """Return the rows of some partitions.

    Raises:
        SinkError: There is no table, or it cannot be read.
    """
    if not DeltaTable.is_deltatable(str(folder)):
        said = f"there is no table '{folder.name}' in the warehouse"
        raise SinkError(said, hint="run its pipeline first")
    with _told(folder):
        table = DeltaTable(str(folder))
        (column,) = table.metadata().partition_columns
        return table.to_pyarrow_table(filters=[(column, "in", list(partitions))])


def partition_rows(folder: Path) -> dict[str, int]:
    """Return the rows of each partition of a table; nothing where there is no table yet."""
    if not DeltaTable.is_deltatable(str(folder)):
        return {}
    with _told(folder):
        table = DeltaTable(str(folder))
        (column,) = table.metadata().partition_columns
        files = pa.table(table.get_add_actions(flatten=True))
    found: dict[str, int] = {}
    names, counts = files[f"partition.{column}"].to_pylist(), files["num_records"].to_pylist()
    for partition, rows in zip(names, counts, strict=True):
        found[partition] = found.get(partition, 0) + rows
    return found


def _opened(folder: Path, schema: pa.Schema, column: str) -> DeltaTable:
    wanted = Schema.from_arrow(schema)
    if not DeltaTable.is_deltatable(str(folder)):
        folder.mkdir(parents=True, exist_ok=True)
        return DeltaTable.create(
            str(folder), wanted, mode="ignore", partition_by=[column], configuration=_SETTINGS
        )
    table = DeltaTable(str(folder))
    known = {field.name: field for field in table.schema().fields}
    for field in wanted.fields:
        there = known.get(field.name)
        if there is not None and there.type != field.type:
            raise SinkError(
                f"column '{field.name}' of table '{folder}' is {_name(there)}, not {_name(field)}",
                hint="CAST it in the query, or write another table",
            )
    if table.metadata().partition_columns != [column]:
        raise SinkError(
            f"table '{folder}' is partitioned by "
            f"{', '.join(table.metadata().partition_columns) or 'nothing'}, not by {column}",
            hint="take back the change of output.partition, or write another table",
        )
    added = [field for field in wanted.fields if field.name not in known]
    if added:
        table.alter.add_columns(added)
    return table


def _is_append(commit: Mapping[str, Any]) -> bool:
    return commit.get("operationParameters", {}).get("mode") == "Append"


def _name(field: Field) -> str:
    """Return a type as Delta's own documents write it."""
    kind = json.loads(field.to_json())["type"]
    return kind if isinstance(kind, str) else json.dumps(kind)


@contextmanager
def _told(folder: Path) -> Generator[None]:
    try:
        yield
    except CommitFailedError as error:
        raise SinkError(
            f"table '{folder}' was changed by another writer: {error}",
            hint="the batch is run again; let one pipeline write to a table",
        ) from error
    except (DeltaError, OSError) as error:
        raise SinkError(f"cannot write to table '{folder}': {error}") from error
