"""SQLFlow's configuration files, lowered into pipelines."""
