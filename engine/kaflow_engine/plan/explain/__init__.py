"""A plan in words and as a drawing."""
