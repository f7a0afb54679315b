"""Assets of a project: what pipelines read and write, and how Dagster names and groups them."""
