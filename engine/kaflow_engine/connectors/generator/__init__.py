"""Made-up records as a source."""
