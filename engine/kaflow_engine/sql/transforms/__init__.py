"""Rows that go through transforms, and past tables of databases."""
