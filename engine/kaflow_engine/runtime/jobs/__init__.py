"""Batches as jobs of Spark: what the driver hands to tasks, and takes from them."""
