"""Dagster as an outside system: streams and their switches, asked by GraphQL."""
