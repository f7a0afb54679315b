"""What other programs may import of the engine; each module lists it in `__all__`."""
