"""This deployment: defs.yaml says what is loaded."""
