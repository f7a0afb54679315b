"""What a run tells of itself: progress, verdicts, metrics, and the port where they are read."""
