"""Streaming SQL pipelines over Kafka: planned by sqlglot, computed by DuckDB, moved by Spark."""
