"""Rows that one look at the dimensions settles, without tables."""
