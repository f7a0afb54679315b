"""Where a topic takes over from the last phase: found once, before any row is read, and kept.

By columns: behind the greatest offset of each partition that the table has then. Of the table only
rows in front of it are read: one that comes later is read from the topic.
"""

import json
from collections.abc import Mapping
from dataclasses import replace

from kaflow_engine.connectors.kafka.source import TopicSource
from kaflow_engine.connectors.sources.contract import KEPT, SourcePlace
from kaflow_engine.errors import SourceUnfit
from kaflow_engine.flow.origins.databases import ClickHouseParams, PostgresParams
from kaflow_engine.flow.origins.files import FilesParams
from kaflow_engine.flow.origins.hybrid import HybridParams, PhaseParams
from kaflow_engine.state.storage.store import Damaged

Offsets = Mapping[int, int]
"""Partition of the topic → the first offset that is read of it."""


def kept_handover(
    params: HybridParams, place: SourcePlace, connection: Mapping[str, str], topic: TopicSource
) -> Offsets:
    """Return where the topic takes over; found now, unless it was before.

    Args:
        params: Of the source, which has a topic.
        place: Where it is kept.
        connection: How the table of the last phase is reached.
        topic: Follows the phases.

    Raises:
        SourceError: It cannot be found, or the topic does not have its first records.
    """
    name = _file(place)
    if place.store.exists(name):
        return _read(place.store.get(name))
    first = topic.start("earliest")
    found = _found(params, place.name, connection, topic, first)
    end = topic.latest()
    called = f"source '{place.name}': topic '{params.topic}'"
    for partition, offset in sorted(found.items()):
        if partition not in first:
            raise SourceUnfit(
                f"{called} has no partition {partition}, at whose offset {offset} it takes over",
                hint="these are offsets of another topic: correct `topic` or `handover`",
            )
        if offset < first[partition]:
            raise SourceUnfit(
                f"{called} takes over at offset {offset} of partition {partition}, and the first "
                f"that is left is {first[partition]}: {first[partition] - offset} offsets are in "
                "neither",
                hint="wait until the archive has them, or say with `handover: {offsets: …}` from "
                "where to go on without them",
            )
        if offset > end[partition]:
            raise SourceUnfit(
                f"{called} takes over at offset {offset} of partition {partition}, which ends at "
                f"{end[partition]}",
                hint="it was recreated, or these are offsets of another topic: correct `handover`",
            )
    place.store.put(name, _written(found))
    return found


def keep_handover(place: SourcePlace, found: Mapping[str, int]) -> Offsets:
    """Keep where the topic takes over, as another machine has found it.

    Raises:
        Damaged: It is kept already, and is another one.
    """
    name = _file(place)
    given = {int(partition): at for partition, at in found.items()}
    if not place.store.exists(name):
        place.store.put(name, _written(given))
    elif (known := _read(place.store.get(name))) != given:
        raise Damaged(
            f"source '{place.name}': the topic takes over elsewhere than a batch says that is read "
            f"again: by partition, at {dict(known)} and not at {given}",
            hint="restore the whole directory from one backup",
        )
    return given


def in_front(params: HybridParams, handover: Offsets) -> tuple[PhaseParams, ...]:
    """Return the phases, the last one without rows that are read from the topic."""
    *others, last = params.phases
    said = params.handover
    if said is None or said.columns is None or isinstance(last, FilesParams):
        return params.phases
    partition, offset = (_quoted(last, column) for column in said.columns)
    parts = [f"({partition} = {p} AND {offset} < {at})" for p, at in sorted(handover.items())]
    condition = f"({' OR '.join(parts)})" if parts else "1 = 0"
    where = condition if last.where is None else f"({last.where}\n) AND {condition}"
    return (*others, replace(last, where=where))


def require_handover(params: HybridParams, connection: Mapping[str, str]) -> None:
    """Look whether the database of the last phase can say where the topic takes over.

    Raises:
        SourceError: It cannot.
    """
    said = params.handover
    if said is not None and said.columns is not None:
        _greatest(params, "the source", connection)
    if said is not None and said.query is not None:
        _asked(params, "the source", connection)


def _found(
    params: HybridParams,
    name: str,
    connection: Mapping[str, str],
    topic: TopicSource,
    first: Offsets,
) -> dict[int, int]:
    said = params.handover
    assert said is not None
    begins = said.time if said.start_at is None else said.start_at
    if begins is not None:
        return dict(topic.start(begins))
    if said.offsets is not None or said.query is not None:
        asked = said.query is not None
        given = (
            _asked(params, f"source '{name}'", connection) if asked else dict(said.offsets or ())
        )
        for partition in first:
            if partition not in given:
                cure = f"add it: offsets: {{{partition}: …}}; 0 reads all of it"
                raise SourceUnfit(
                    f"source '{name}': the handover says no offset of partition {partition} of "
                    f"topic '{params.topic}'",
                    hint="let the query give a row for it; 0 reads all of it" if asked else cure,
                )
        return given
    return {**first, **_greatest(params, f"source '{name}'", connection)}


def _greatest(params: HybridParams, what: str, connection: Mapping[str, str]) -> dict[int, int]:
    """Return, of each partition, the offset behind the greatest one that the last phase has."""
    last, said = params.phases[-1], params.handover
    assert said is not None
    assert said.columns is not None
    match last:
        case PostgresParams():
            from kaflow_engine.connectors.postgres.source.reader import PostgresReader

            rows = PostgresReader(last, connection, what).greatest(*said.columns)
        case ClickHouseParams():
            from kaflow_engine.connectors.clickhouse.source.reader import ClickHouseReader

            rows = ClickHouseReader(last, connection, what).greatest(*said.columns)
        case FilesParams():
            raise SourceUnfit(f"{what}: files have no columns for a handover")
    for partition, offset in rows:
        if partition is None or offset is None:
            raise SourceUnfit(
                f"{what}: rows of the last phase have no {' or no '.join(said.columns)}, so that "
                "it is not known whether the topic has them, too",
                hint="leave them out with `where`, or read them in a phase before",
            )
    return {int(partition): int(offset) + 1 for partition, offset in rows}


def _asked(params: HybridParams, what: str, connection: Mapping[str, str]) -> dict[int, int]:
    """Return what the query of a handover gives in the database of the last phase."""
    last, said = params.phases[-1], params.handover
    assert said is not None
    assert said.query is not None
    match last:
        case PostgresParams():
            from kaflow_engine.connectors.postgres.source.reader import PostgresReader

            rows = PostgresReader(last, connection, what).rows_of(said.query)
        case ClickHouseParams():
            from kaflow_engine.connectors.clickhouse.source.reader import ClickHouseReader

            rows = ClickHouseReader(last, connection, what).rows_of(said.query)
        case FilesParams():
            raise SourceUnfit(f"{what}: files cannot be asked for a handover")
    found: dict[int, int] = {}
    for row in rows:
        try:
            partition, offset = map(int, row)
        except (TypeError, ValueError) as error:
            raise SourceUnfit(
                f"{what}: the query of the handover gives the row {row!r}",
                hint="let it give two numbers: a partition, and the first offset that is read of "
                "it",
            ) from error
        if found.setdefault(partition, offset) != offset:
            raise SourceUnfit(
                f"{what}: the query of the handover gives two offsets of partition {partition}: "
                f"{found[partition]} and {offset}",
                hint="let it give one row of each partition, such as with GROUP BY",
            )
    return found


def _quoted(params: PostgresParams | ClickHouseParams, column: str) -> str:
    if isinstance(params, PostgresParams):
        from kaflow_engine.duck.quoting import identifier

        return identifier(column)
    from kaflow_engine.connectors.clickhouse.names import name

    return name(column)


def _file(place: SourcePlace) -> str:
    return f"{KEPT}/{place.name}/handover.json"


def _written(found: Offsets) -> bytes:
    return json.dumps({str(partition): at for partition, at in found.items()}).encode()


def _read(data: bytes) -> Offsets:
    found: dict[str, int] = json.loads(data)
    return {int(partition): at for partition, at in found.items()}
