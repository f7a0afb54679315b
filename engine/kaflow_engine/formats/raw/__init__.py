"""Values as they are, in one column."""
