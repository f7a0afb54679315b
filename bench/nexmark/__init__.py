"""Nexmark: an auction house, and questions to its stream of events."""
