"""Queries over tables: what they keep by which key, and how they are joined."""
