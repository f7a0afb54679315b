"""What pipelines have written: the newest rows, partitions of tables, and dead letters."""

from typing import TYPE_CHECKING

from kaflow_engine.api.lazy import lazily

if TYPE_CHECKING:
    from kaflow_engine.connectors.delta.table import partition_rows
    from kaflow_engine.connectors.letters import Letter
    from kaflow_engine.connectors.letters import chosen as choose_letters
    from kaflow_engine.model.letters import COLUMNS as LETTER_COLUMNS
    from kaflow_engine.runtime.dead_letters.redrive import find_letters, redrivable, redrive
    from kaflow_engine.runtime.newest_rows import NewestRows, newest_letters, newest_rows
else:
    __getattr__ = lazily(__name__)

__all__ = [
    "LETTER_COLUMNS",
    "Letter",
    "NewestRows",
    "choose_letters",
    "find_letters",
    "newest_letters",
    "newest_rows",
    "partition_rows",
    "redrivable",
    "redrive",
]
