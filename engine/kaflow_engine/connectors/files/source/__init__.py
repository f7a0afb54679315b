"""Files that appear in a folder, as a source of records."""
