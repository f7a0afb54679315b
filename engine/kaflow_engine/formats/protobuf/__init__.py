"""Protobuf to columns and back."""
