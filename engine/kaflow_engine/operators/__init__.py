"""What a task does: pure functions over Arrow tables and keyed state."""
