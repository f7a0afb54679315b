"""Random pipelines over random records, compared with the reference interpreter."""
