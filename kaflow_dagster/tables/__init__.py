"""Tables as partitioned assets, filled by backfills and by streams."""
