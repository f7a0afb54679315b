"""Kinds of transforms: each makes other rows of rows, in a way of its own."""
