"""dbt-style models: SQL files with Jinja, and property files beside them, become pipelines."""
