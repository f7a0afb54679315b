"""Tables that queries look up: what a database must offer, which there are, and what they share."""
