"""Checkpoints in a bucket, and proofs that a state is whole."""
