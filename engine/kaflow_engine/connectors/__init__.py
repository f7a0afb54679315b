"""One outside system per file."""
