"""Streams as runs: the sensor that keeps them running, and what they report."""
