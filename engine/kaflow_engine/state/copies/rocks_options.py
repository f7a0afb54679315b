"""RocksDB options: small, because many copies are opened by short-lived tasks."""

from functools import cache

from rocksdict import (
    BlockBasedIndexType,
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    Options,
    ReadOptions,
)

COMPACT_AT = 6
"""Level-0 files that start a compaction; every change file becomes one, or several together."""

_CACHE = 32 << 20
_BLOCK = 8 << 10
_RESTART = 4
"""Keys of a block that are written as what differs from the one before; finding one is a tenth
faster than with RocksDB's 16, and files are a tenth larger."""


def copy_options() -> Options:
    """Return the options of a copy.

    Index and filters are split and read through the block cache, so that opening reads almost
    nothing and ten million keys take no more memory than ten thousand.
    """
    table = BlockBasedOptions()
    table.set_block_cache(_cache())
    table.set_block_size(_BLOCK)
    table.set_block_restart_interval(_RESTART)
    table.set_bloom_filter(10, False)
    table.set_format_version(5)
    table.set_index_type(BlockBasedIndexType.two_level_index_search())
    table.set_partition_filters(True)
    table.set_cache_index_and_filter_blocks(True)
    table.set_pin_top_level_index_and_filter(True)
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_block_based_table_factory(table)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_level_zero_file_num_compaction_trigger(COMPACT_AT)
    options.set_max_background_jobs(2)
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(1 << 20)
    options.set_stats_dump_period_sec(0)
    return options


@cache
def _cache() -> Cache:
    """Return the cache of this process, for all its copies."""
    return Cache(_CACHE)


def until(stop: bytes | None) -> ReadOptions:
    """Return options to read up to a key, which is left out; None: to the end."""
    # No lower bound: rocksdict takes it for an upper one, and seeking does the same.
    options = ReadOptions()
    if stop is not None:
        options.set_iterate_upper_bound(stop)
    return options
