"""A slow reference interpreter of pipelines: the oracle of the property tests."""
