"""How a run takes over a state from the run before."""
