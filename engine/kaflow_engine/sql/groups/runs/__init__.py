"""Runs of rows in queries, and the SQL over them."""
