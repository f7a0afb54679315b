"""Reads ranges of topics straight into Arrow, where the library of `engine/native` is installed."""
