"""Named SQL over HTTP: `kaflow serve`."""
