"""Avro to columns and back."""
