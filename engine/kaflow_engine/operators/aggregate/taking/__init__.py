"""Rows that are taken into groups: of fixed windows, of sessions, of a table, or many at once."""
