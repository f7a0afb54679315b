"""Data sources that are written for PySpark: read once, into a journal."""
