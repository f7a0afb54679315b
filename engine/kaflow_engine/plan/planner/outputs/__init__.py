"""What is written: columns, keys and schemas of outputs, checked against their queries."""
