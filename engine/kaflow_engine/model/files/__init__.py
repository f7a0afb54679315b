"""YAML files to specifications, with every mistake at its line."""
