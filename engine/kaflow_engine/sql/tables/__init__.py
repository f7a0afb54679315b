"""Tables in a query: which names are tables, how they are joined, and what cannot be done."""
