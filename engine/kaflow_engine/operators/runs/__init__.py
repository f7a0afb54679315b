"""Runs of rows: any SELECT over the next so many rows."""
