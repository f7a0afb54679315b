"""Where records come from, and which ranges of them a batch reads."""
