"""Where files of a state are: directories, buckets, leases."""
