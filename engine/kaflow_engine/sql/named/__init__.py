"""Relations by their names: what they are, and how they fit together."""
