"""GROUP BY: what groups keep, when their rows leave, and what cannot be done with them."""
