"""Inputs of a pipeline: what is said of topics, and of sources that are no topics."""
