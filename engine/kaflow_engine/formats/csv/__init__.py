"""Lines of comma-separated values, without names."""
