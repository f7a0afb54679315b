"""Tables that are read once, in pages by a key; each page is kept before a batch names its rows."""
