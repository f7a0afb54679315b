"""What `kaflow state` does."""
