"""The functions of Lenses SQL, each as the DuckDB expression that gives the same."""
