"""What all runs share: work in a thread of its own, tags, and names."""
