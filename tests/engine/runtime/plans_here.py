"""Plans as the planner would build them, for tests of what runs them."""

from kaflow_engine.model.columns import Column
from kaflow_engine.operators.layout import key_text
from kaflow_engine.operators.params import (
    DrivingParams,
    FinishParams,
    Plan,
    SideParams,
    StepParams,
    TopicParams,
)

HOUR = 3_600_000


def topic(name: str, index: int, rank: int, columns: str) -> TopicParams:
    """A JSON topic of VARCHAR columns."""
    return TopicParams(
        name=name,
        index=index,
        format="json",
        columns=tuple(Column(c, "VARCHAR") for c in columns.split()),
        event_time=None,
        rank=rank,
        driving=rank == 2,
        on_error="dead_letter",
        max_future=10**15,
        lateness=0,
        idle_timeout=30_000,
    )


def filter_plan(name: str, events: str, output: str, partitions: int = 2) -> Plan:
    """SELECT id, n FROM events e WHERE n <> 'no', keyed by id."""
    return Plan(
        pipeline=name,
        name=name,
        topics=(topic(events, 0, 2, "id n"),),
        driving=DrivingParams(
            alias="e",
            topic=0,
            columns=(Column("id", "VARCHAR"), Column("n", "VARCHAR")),
            filter="\"e.n\" <> 'no'",
            key=None,
            needs=None,
            raw=None,
            ttl=HOUR,
        ),
        steps=(),
        finish=_finish(output, (("id", '"e.id"'), ("n", '"e.n"'))),
        emission="immediate",
        on_expiry="drop",
        reemit=False,
        partitions=partitions,
        last_exchange=False,
        dead_letter_topic=f"{output}.dead",
        delivery="exactly_once",
        dimensions_first=True,
    )


def lookup_plan(
    name: str,
    events: str,
    profiles: str,
    output: str,
    partitions: int = 2,
    smart: bool = False,
) -> Plan:
    """SELECT e.id, e.n, p.tier FROM events e LEFT JOIN profiles p ON e.id = p.id."""
    names = sorted([events, profiles])
    places = {name: i for i, name in enumerate(names)}
    topics = {events: topic(events, places[events], 2, "id n"),
              profiles: topic(profiles, places[profiles], 0, "id tier")}  # fmt: skip
    before = (Column("e.id", "VARCHAR"), Column("e.n", "VARCHAR"))
    step = StepParams(
        before=before,
        sides=(
            SideParams(
                alias="p",
                topic=places[profiles],
                role="dimension",
                kind="LEFT",
                columns=(Column("tier", "VARCHAR"),),
                key=key_text([('"p.id"', "VARCHAR")]),
                filter=None,
                ttl=HOUR,
                lookup="current",
                history=HOUR,
                tombstones=True,
            ),
        ),
        require='"p.tier" IS NOT NULL' if smart else None,
        after=(),
        next_key=None,
    )
    outputs = (("id", '"e.id"'), ("n", '"e.n"'), ("tier", '"p.tier"'))
    return Plan(
        pipeline=name,
        name=name,
        topics=tuple(topics[name] for name in names),
        driving=DrivingParams(
            alias="e",
            topic=places[events],
            columns=(Column("id", "VARCHAR"), Column("n", "VARCHAR")),
            filter=None,
            key=key_text([('"e.id"', "VARCHAR")]),
            needs=None,
            raw=None,
            ttl=HOUR,
        ),
        steps=(step,),
        finish=_finish(output, outputs),
        emission="smart" if smart else "immediate",
        on_expiry="emit" if smart else "drop",
        reemit=False,
        partitions=partitions,
        last_exchange=False,
        dead_letter_topic=f"{output}.dead",
        delivery="exactly_once",
        dimensions_first=True,
    )


def _finish(output: str, outputs: tuple[tuple[str, str], ...]) -> FinishParams:
    return FinishParams(
        where=None,
        outputs=tuple((Column(name, "VARCHAR"), sql) for name, sql in outputs),
        key="id",
        topic=output,
        format="json",
    )
