"""What the state of a plan holds, as rows to look at."""
