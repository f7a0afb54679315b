"""The `kaflow` command: one file per sub-command; parse, call, print."""
