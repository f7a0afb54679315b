"""Case files: read, run, compared, reported."""
