"""Files that take minutes, of which a run of all tests takes one half: the seed says which.

`KAFLOW_KILLS=all` takes both, and `KAFLOW_KILLS_SEED` with an even number the first. A run that
does not ask for files of both halves takes what it asks for.
"""

from collections.abc import Collection

from tests.acceptance.kills import ALL, SEED

HALVES = (
    frozenset(
        {
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


def next_turn(files: Collection[str]) -> frozenset[str]:
    """Return the files that are left to another run, of those whose tests are asked for.

    Args:
        files: Each with its folder.
    """
    if ALL or not all(half.intersection(files) for half in HALVES):
        return frozenset()
    return HALVES[(SEED + 1) % 2]
