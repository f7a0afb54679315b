"""Settings of Streamling, as layers of the configuration."""
