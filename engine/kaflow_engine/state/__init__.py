"""Keyed state: batch log, change log, RocksDB copy, snapshots."""
