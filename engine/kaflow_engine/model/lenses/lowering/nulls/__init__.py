"""Which expressions of a processor can be NULL, and where none may be."""
