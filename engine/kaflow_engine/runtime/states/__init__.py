"""What `kaflow state` does: states looked at while pipelines run, and changed while they stand."""
