"""The rows that travel between tasks: schemas, text and binary forms, order, partitions."""
