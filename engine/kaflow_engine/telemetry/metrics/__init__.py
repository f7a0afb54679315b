"""The metrics of a run: which there are, and how they are served."""
