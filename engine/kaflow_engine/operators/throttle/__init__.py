"""Changes of tables that are held back: a key sends one at most in so much batch time."""
