"""Tables of ClickHouse as a source of records."""
