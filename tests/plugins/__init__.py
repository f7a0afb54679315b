"""Plugins that files of tests name."""
