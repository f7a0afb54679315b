"""The configuration from its layers."""
