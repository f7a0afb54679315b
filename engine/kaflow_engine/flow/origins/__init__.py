"""Where the records of sources come from that are no topics."""
