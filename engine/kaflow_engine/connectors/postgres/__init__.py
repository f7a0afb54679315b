"""Tables of PostgreSQL: rows, merges and a ledger of batches in one transaction."""
