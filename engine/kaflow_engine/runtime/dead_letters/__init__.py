"""Dead letters of a pipeline, wherever they are kept: found, and put through it again."""
