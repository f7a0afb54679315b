"""Bytes to columns and back: JSON, Avro, the schema registry."""
