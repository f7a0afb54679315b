"""JSON with a schema in the registry."""
