"""What runs, as data: frozen, picklable, nothing but text and numbers."""
