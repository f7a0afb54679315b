"""Sources that plugins offer: what they give becomes records."""
