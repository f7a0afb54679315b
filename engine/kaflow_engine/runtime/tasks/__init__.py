"""What runs in Spark's Python workers, and what ships it there."""
