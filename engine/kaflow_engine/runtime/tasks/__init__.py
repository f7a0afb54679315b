"""What runs in Spark's Python workers, and what travels there with it."""
