"""What cannot be read twice is written down before it is acknowledged, and read from there."""
