"""Tests that take minutes, of which a run of all tests takes one half: the seed says which.

`KAFLOW_KILLS=all` takes both, and `KAFLOW_KILLS_SEED` with an even number the first. A run that
does not ask for tests of both halves takes what it asks for.
"""

from collections.abc import Collection

import pytest

from tests.acceptance.kills import ALL, SEED

KILLED = " at a place"
"""Behind a file: only its pipelines that are killed at a `place`."""

HALVES = (
    frozenset(
        {
            f"acceptance/test_aggregates.py{KILLED}",
            f"acceptance/test_clusters.py{KILLED}",
            f"acceptance/test_handler.py{KILLED}",
            f"acceptance/test_named_sinks.py{KILLED}",
            f"acceptance/test_plugin_state.py{KILLED}",
            f"acceptance/test_several_chains.py{KILLED}",
            f"acceptance/test_table_sinks.py{KILLED}",
            f"acceptance/test_webhook.py{KILLED}",
            "acceptance/test_backfill_beside.py",
            "acceptance/test_checkpoint_troubles.py",
            "acceptance/test_checkpoints.py",
            "acceptance/test_cluster.py",
            "acceptance/test_cluster_secret.py",
            "acceptance/test_expiry_at_once.py",
            "acceptance/test_history.py",
            "acceptance/test_jvm.py",
            "kaflow_dagster/test_live_changed.py",
            "acceptance/test_old_state.py",
            "acceptance/test_state_commands.py",
            "acceptance/test_weather_losses.py",
            "acceptance/test_weather_schemas.py",
        }
    ),
    frozenset(
        {
            f"acceptance/test_attached.py{KILLED}",
            f"acceptance/test_database_sources.py{KILLED}",
            f"acceptance/test_hybrid.py{KILLED}",
            f"acceptance/test_named_sources.py{KILLED}",
            f"acceptance/test_postgres.py{KILLED}",
            f"acceptance/test_several_outputs.py{KILLED}",
            f"acceptance/test_table_topics.py{KILLED}",
            f"acceptance/test_without_brokers.py{KILLED}",
            "acceptance/test_checkpoints_on_spark.py",
            "acceptance/test_crash_beside.py",
            "acceptance/test_database_jobs.py",
            "acceptance/test_fences.py",
            "acceptance/test_letters_apart.py",
            "kaflow_dagster/test_live_killed.py",
            "acceptance/test_plugin.py",
            "acceptance/test_pyspark_source.py",
            "acceptance/test_recreated_topics.py",
            "acceptance/test_replicas.py",
            "acceptance/test_smaller_batches.py",
            "acceptance/test_two_drivers.py",
            "acceptance/test_weather_outages.py",
            "acceptance/test_weather_security.py",
            "acceptance/test_windows_in_tables.py",
        }
    ),
)


def part_of(item: pytest.Item) -> str:
    """Return the file of a test, with its folder, and whether it kills at a place."""
    called = getattr(item, "callspec", None)
    killed = called is not None and called.params.get("place") is not None
    return f"{item.path.parent.name}/{item.path.name}{KILLED if killed else ''}"


def next_turn(parts: Collection[str]) -> frozenset[str]:
    """Return what is left to another run, of the tests that are asked for.

    Args:
        parts: Each as `part_of`.
    """
    if ALL or not all(half.intersection(parts) for half in HALVES):
        return frozenset()
    return HALVES[(SEED + 1) % 2]
