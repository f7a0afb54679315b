"""Groups whose time is up: windows that end or are closed, and groups that are forgotten."""
