"""Lenses SQL processors: files in the language of Lenses become pipelines."""
