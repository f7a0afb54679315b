"""Finding the files of a project."""
