"""Dead letters as rows of a table."""

from kaflow_engine.flow.sinks import ConnectorSink, Setting
from kaflow_engine.model.columns import Column

LETTER_COLUMNS = (
    *(Column(name, "VARCHAR") for name in ("pipeline", "topic")),
    Column("partition", "INTEGER"),
    Column("offset", "BIGINT"),
    Column("timestamp", "BIGINT"),
    *(Column(name, "VARCHAR") for name in ("phase", "error", "message")),
    Column("attempt", "INTEGER"),
    *(Column(name, "VARCHAR") for name in ("chain", "backfill")),
    *(Column(name, "BLOB") for name in ("key", "value")),
    Column("headers", "VARCHAR"),
)
"""Headers are a JSON list of names and values, these in base64."""


def letter_table(kind: str, connection: str, table: str) -> ConnectorSink:
    """Return the table of a database as what takes dead letters; it is created where it is not."""
    settings: tuple[tuple[str, Setting], ...] = (
        ("connection", connection),
        ("create", True),
        ("table", table),
    )
    return ConnectorSink(
        id="dead_letters",
        inputs=(),
        exchange=False,
        key=None,
        kind=kind,
        target="dead_letters",
        settings=settings,
        columns=LETTER_COLUMNS,
    )


def home_of(cluster: str, letters: ConnectorSink | str | None) -> dict[str, str]:
    """Return where runs are known and dead letters go, unless it is as it was always."""
    found = {"cluster": cluster, "letters": letters_called(letters) or ""}
    return {name: text for name, text in found.items() if text}


def letters_called(letters: ConnectorSink | str | None) -> str | None:
    """Return in a few words where dead letters go that have no topic; None: they may have one."""
    if not isinstance(letters, ConnectorSink):
        return letters and "files beside the state"
    settings = dict(letters.settings)
    return f"table '{settings['table']}' of {letters.kind} connection '{settings['connection']}'"
