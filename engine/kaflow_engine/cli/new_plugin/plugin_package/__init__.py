"""Kinds of sinks, sources and transforms for kaflow."""
