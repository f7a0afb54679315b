"""JSON to columns and back."""
