"""What the driver does for a sink after the tasks of a batch."""
