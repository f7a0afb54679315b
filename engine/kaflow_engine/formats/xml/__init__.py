"""XML: the children of the outermost element are the columns."""
