"""What is shown while pipelines run."""
