"""What will happen, as frozen data."""
