"""Scripts that are called with each row, in an engine without files, network and clock."""
