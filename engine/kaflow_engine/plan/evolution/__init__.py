"""A new plan beside the one that a state was made for."""
