"""A pipeline file and the columns of its topics to a plan."""
