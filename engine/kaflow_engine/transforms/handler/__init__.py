"""Handlers: an HTTP service that is asked about rows."""
