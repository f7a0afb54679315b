"""Chains of a flow: what the rows of one edge from a Decode go through, and what is asked of it."""
