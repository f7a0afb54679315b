"""Which topics each run needs, and how they are filled."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bench.feed.data import CHANGE_SCHEMA, CLICK_SCHEMA, PROFILE_SCHEMA, Fill
from bench.options import CHANGE_RUNS, CONNECTED_RUNS, SQLFLOW_RUNS, Sizes

BIG_EVENTS = 0.5
"""Events of run f, as a share of those of the others: its time goes into the dimension."""

PAIR_SPAN = 2 * 3_600_000
"""Event time of run h: with a TTL of 10 minutes each click meets one purchase or two."""


WINDOW_SPAN = 12 * 60_000
"""Event time of runs k and l: twelve windows of a minute."""

HOP_KEYS = 0.1
"""Keys of run l, as a share of those of the others: each event counts in five windows."""

NONE: Mapping[str, int] = {}


def fills_for(
    only: Sequence[str], sizes: Sizes, seed: int, schemas: Mapping[str, int] = NONE
) -> list[Fill]:
    """Return the topics of some runs, each once.

    Args:
        only: The runs.
        sizes: How large.
        seed: Equal seeds give equal values.
        schemas: Ids of the writer schemas, by topic.
    """
    keys, events = sizes.keys, sizes.events
    clicks = Fill(topic="clicks", kind="clicks", records=events, keys=keys, seed=seed)
    profiles = Fill(topic="profiles", kind="profiles", records=keys, keys=keys, seed=seed)
    changes = Fill(
        topic="avro_changes",
        kind="avro_changes",
        records=events,
        keys=keys,
        seed=seed,
        schema=schemas.get("avro_changes", 0),
    )
    by_run: dict[str, list[Fill]] = {
        "floor": [clicks],
        "a": [clicks],
        "b": [clicks, profiles],
        "c": [clicks, profiles],
        "d": [
            Fill(topic="late_clicks", kind="late_clicks", records=events, keys=keys, seed=seed),
            profiles,
        ],
        "e": [
            Fill(
                topic="avro_clicks",
                kind="avro_clicks",
                records=events,
                keys=keys,
                seed=seed,
                schema=schemas.get("avro_clicks", 0),
            ),
            Fill(
                topic="avro_profiles",
                kind="avro_profiles",
                records=keys,
                keys=keys,
                seed=seed,
                schema=schemas.get("avro_profiles", 0),
            ),
        ],
        "f": [
            Fill(
                topic="big_clicks",
                kind="clicks",
                records=int(events * BIG_EVENTS),
                keys=sizes.big_keys,
                seed=seed,
            ),
            Fill(
                topic="big_profiles",
                kind="profiles",
                records=sizes.big_keys,
                keys=sizes.big_keys,
                seed=seed,
            ),
        ],
        "w": [],
        "g": [profiles],
        "h": [
            Fill(
                topic="pair_clicks",
                kind="clicks",
                records=events // 2,
                keys=keys,
                seed=seed,
                span=PAIR_SPAN,
            ),
            Fill(
                topic="purchases",
                kind="purchases",
                records=events // 2,
                keys=keys,
                seed=seed + 1,
                span=PAIR_SPAN,
            ),
        ],
        "j": [clicks],
        "k": [replace(clicks, topic="window_clicks", span=WINDOW_SPAN)],
        "l": [
            replace(clicks, topic="hop_clicks", span=WINDOW_SPAN, keys=max(int(keys * HOP_KEYS), 1))
        ],
        "m": [
            profiles,
            Fill(topic="balances", kind="balances", records=events, keys=keys, seed=seed),
        ],
        "n": [clicks, profiles],
        **{run: [clicks] for run in (*CONNECTED_RUNS, *SQLFLOW_RUNS)},
        **{run: [changes] for run in CHANGE_RUNS},
    }
    found = {fill.topic: fill for run in only for fill in by_run.get(run, [])}
    return list(found.values())


SCHEMAS = {
    "avro_clicks": CLICK_SCHEMA,
    "avro_profiles": PROFILE_SCHEMA,
    "avro_changes": CHANGE_SCHEMA,
}
"""Topic to the schema of its values, to be registered before runs that need a registry."""
