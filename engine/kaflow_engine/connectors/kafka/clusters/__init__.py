"""Several clusters: how each is reached, and which topics are where."""
