"""Files in folders of the warehouse."""
