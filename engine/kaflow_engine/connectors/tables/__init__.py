"""What the sinks into tables have in common: columns, faults of rows, ledgers, retries."""
