"""Classes that installed packages offer under a name, found as entry points."""
