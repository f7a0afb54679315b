"""Streamling pipelines: files of sources, transforms and sinks become pipelines."""
