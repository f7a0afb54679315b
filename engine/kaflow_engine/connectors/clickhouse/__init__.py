"""Tables of ClickHouse: blocks of rows over HTTP, with tokens that tell one again, and a ledger."""
