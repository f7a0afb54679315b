"""Webhooks as outputs: rows are sent to an address by HTTP."""
