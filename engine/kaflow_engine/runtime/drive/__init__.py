"""What makes batches: an endless stream, or a bounded run."""
