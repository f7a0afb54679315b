"""Commands that run pipelines."""
