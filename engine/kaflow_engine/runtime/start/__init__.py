"""How a run takes over a state: from a checkpoint, from earlier runs, or begun anew."""
