"""Exact integers of up to 256 bits: DuckDB's BIGNUM, and what of it DuckDB does not have."""
