"""RocksDB copies and their snapshots."""
