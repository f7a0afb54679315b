"""Commits to a Delta table: one a batch, or all that a backfill replaces at once."""

import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Field, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError

from kaflow_engine.connectors.delta.data_files import TableFile
from kaflow_engine.connectors.delta.errors import TableUnfit
from kaflow_engine.connectors.delta.files import Action, Replacement, add_action
from kaflow_engine.connectors.delta.held import (
    WRITER,
    Added,
    added_before,
    owner_of,
    require_same,
)
from kaflow_engine.connectors.replaced import Replaced
from kaflow_engine.errors import SinkError, TakenOver

_BACKFILL = "kaflow.backfill"
"""In the information of a commit: the state of the backfill, and its generation."""

_TRIES = 20
"""How often a backfill may lose to other writers of the table in a row."""

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
        with _translated_errors(folder):
            self._table = _opened(folder, schema, column)
            self._schema = self._table.schema()
            self._owner = owner_of(self._table)

    def committed(self) -> int:
        """Return the last batch of this writer; 0 before the first."""
        with _translated_errors(self._folder):
            self._table.update_incremental()
            return self._table.transaction_version(self._writer) or 0

    def own(self) -> None:
        """Make the table this writer's: whoever had it can add no more.

        Raises:
            TakenOver: It became another one's since it was opened.
            SinkError: The table cannot be written.
        """
        owner = owner_of(self._table)
        if owner == self._writer:
            return
        if owner != self._owner:
            raise TakenOver(
                f"another state of the pipeline has taken over table '{self._folder.name}': "
                f"'{owner}'",
                hint="a pipeline has one run at a time; stop this one",
            )
        with _translated_errors(self._folder):
            self._table.alter.set_table_properties(
                {WRITER: self._writer}, raise_if_not_exists=False
            )
        self._owner = self._writer

    def add(
        self, batch: int, files: Sequence[TableFile], mark: str = "", same_rows: bool = True
    ) -> bool:
        """Add the files of a batch, unless the table has this very batch.

        Args:
            batch: Its number.
            files: What its tasks wrote; removed where the table has their rows.
            mark: Its `batch_mark`.
            same_rows: Whether a batch that the table has must have the rows it had.

        Returns:
            Whether they were added.

        Raises:
            StateError: The table has another batch of that number, or a later one.
            TakenOver: The table belongs to another state since it was opened.
            SinkError: The table cannot be written.
        """
        new, last = Added.of(batch, mark, files), self.committed()
        if last >= batch:
            with _translated_errors(self._folder):
                before = added_before(self._table, self._writer, batch)
            require_same(self._folder.name, before, new, same_rows)
            self._remove(files)
            return False
        if not files:
            return False
        self.own()
        with _translated_errors(self._folder):
            self._commit(
                [add_action(file, self._column) for file in files],
                Transaction(self._writer, batch),
                new.info(self._writer),
            )
        return True

    def check_known(self, replaced: Replaced) -> None:
        """Refuse to replace rows of which nothing says what record they were made of.

        Raises:
            SinkError: The table cannot be read.
            StateError: There are some.
        """
        with _translated_errors(self._folder):
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
        with _translated_errors(self._folder):
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


def require_fit(folder: Path, schema: pa.Schema, column: str) -> None:
    """Look whether a sink could write a table, which may not be there yet; nothing is changed.

    Raises:
        TableUnfit: It has columns of other types, or other partitions.
        SinkError: It cannot be read.
    """
    with _translated_errors(folder):
        if DeltaTable.is_deltatable(str(folder)):
            _require_fit(DeltaTable(str(folder)), folder, schema, column)


def held_batches(folder: Path, writer: str) -> dict[str, int]:
    """Return writer to last batch: of a writer, and of whoever else owns the table.

    Nothing is changed by looking.

    Raises:
        SinkError: The table cannot be read.
    """
    with _translated_errors(folder):
        if not DeltaTable.is_deltatable(str(folder)):
            return {}
        table = DeltaTable(str(folder))
        owner, own = owner_of(table), table.transaction_version(writer)
        held = {} if own is None else {writer: own}
        if owner is not None and owner != writer:
            held[owner] = table.transaction_version(owner) or 0
        return held


def read_partitions(folder: Path, partitions: Sequence[str]) -> pa.Table:
    """Return the rows of some partitions.

    Raises:
        SinkError: There is no table, or it cannot be read.
    """
    if not DeltaTable.is_deltatable(str(folder)):
        said = f"there is no table '{folder.name}' in the warehouse"
        raise SinkError(said, hint="run its pipeline first")
    with _translated_errors(folder):
        table = DeltaTable(str(folder))
        (column,) = table.metadata().partition_columns
        return table.to_pyarrow_table(filters=[(column, "in", list(partitions))])


def partition_rows(folder: Path) -> dict[str, int]:
    """Return the rows of each partition of a table; nothing where there is no table yet."""
    if not DeltaTable.is_deltatable(str(folder)):
        return {}
    with _translated_errors(folder):
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
    _require_fit(table, folder, schema, column)
    known = {field.name for field in table.schema().fields}
    added = [field for field in wanted.fields if field.name not in known]
    if added:
        table.alter.add_columns(added)
    return table


def _require_fit(table: DeltaTable, folder: Path, schema: pa.Schema, column: str) -> None:
    known = {field.name: field for field in table.schema().fields}
    for field in Schema.from_arrow(schema).fields:
        there = known.get(field.name)
        if there is not None and there.type != field.type:
            raise TableUnfit(
                f"column '{field.name}' of table '{folder}' is {_name(there)}, not {_name(field)}",
                hint="CAST it in the query, or write another table",
            )
    if table.metadata().partition_columns != [column]:
        raise TableUnfit(
            f"table '{folder}' is partitioned by "
            f"{', '.join(table.metadata().partition_columns) or 'nothing'}, not by {column}",
            hint="take back the change of output.partition, or write another table",
        )


def _name(field: Field) -> str:
    """Return a type as Delta's own documents write it."""
    kind = json.loads(field.to_json())["type"]
    return kind if isinstance(kind, str) else json.dumps(kind)


@contextmanager
def _translated_errors(folder: Path) -> Generator[None]:
    try:
        yield
    except CommitFailedError as error:
        raise SinkError(
            f"table '{folder}' was changed by another writer: {error}",
            hint="the batch is run again; let one pipeline write to a table",
        ) from error
    except (DeltaError, OSError) as error:
        raise SinkError(f"cannot write to table '{folder}': {error}") from error
