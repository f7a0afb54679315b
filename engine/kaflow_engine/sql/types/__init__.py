"""Types of expressions: found by DuckDB, and what it says of mistakes."""
