"""The language of processors: text to statements that know their places."""
