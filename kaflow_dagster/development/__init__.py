"""A project in Dagster on this machine, started and asked."""
