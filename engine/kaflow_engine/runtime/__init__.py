"""Runs a plan on Spark."""
