"""This deployment: the example project, and an asset that depends on one of its tables."""
