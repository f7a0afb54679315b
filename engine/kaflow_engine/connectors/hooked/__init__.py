"""Plugins as classes with hooks: one that begins, one for rows, and two around each commit.

They stand on the contracts of sources, transforms and sinks, and nothing else knows them.
"""
