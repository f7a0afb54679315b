"""Where rows go, as files and the configuration say it."""
