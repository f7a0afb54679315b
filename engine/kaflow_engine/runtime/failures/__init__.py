"""What went wrong, by class: try again, stop, or ask the author."""
