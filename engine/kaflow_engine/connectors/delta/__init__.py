"""Delta tables: files of tasks, one commit for a batch."""
