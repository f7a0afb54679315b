"""`uuid7()`: of each record and call another one, and the same one when a batch runs again."""

from collections.abc import Iterator

from kaflow_engine.model.streamling.sql.text import Edit, SqlText, edited

UUID7 = "uuid7"
_RECORD = "<call>, _topic, _partition, _offset"
_DIGITS = f"format('{{:012x}}', epoch_ms(_timestamp)) || md5(concat_ws(' ', {_RECORD}))"
_PARTS = r"'^(.{8})(.{4})(...)(...)(.{12}).*$', '\1-\2-7\3-8\4-\5'"
_UUID = f"regexp_replace({_DIGITS}, {_PARTS})"
"""The time of the record in milliseconds, and bits of a hash of what tells it apart."""


def uuid_calls(sql: SqlText) -> list[int]:
    """Return the words of a query that call it."""
    return [
        place
        for place, word in enumerate(sql.words[:-1])
        if word.text.lower() == UUID7
        and word.kind != "STRING"
        and sql.words[place + 1].kind == "L_PAREN"
    ]


def with_uuids(sql: SqlText, node: str) -> str:
    """Return a query with what its calls are; its lines stay.

    Args:
        sql: Whose calls have no arguments.
        node: Whose query it is: another one makes others of the same record.
    """
    return edited(sql.text, [*_edits(sql, node)])


def _edits(sql: SqlText, node: str) -> Iterator[Edit]:
    for number, place in enumerate(uuid_calls(sql)):
        start, end = sql.words[place].start, sql.words[place + 2].end
        call = "'" + f"{node} {number}".replace("'", "''") + "'"
        yield Edit(start, end, _UUID.replace("<call>", call))
