"""Rows that are looked up in the tables of databases."""
