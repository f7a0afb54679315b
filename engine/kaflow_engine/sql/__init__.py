"""Pure passes over SQL: the shape of a query, its columns and its types."""
