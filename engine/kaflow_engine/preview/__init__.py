"""Previews of pipelines: the rows of each node, as they come, and nothing left behind."""
