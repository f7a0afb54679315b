"""Iceberg tables: rows of a batch, and its number, in one commit of the driver."""
