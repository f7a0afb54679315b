"""How the inputs of a plan are read that are not, or not only, topics."""
