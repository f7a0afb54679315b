"""SQL statements of an author's own that DuckDB runs over the rows of each batch."""
