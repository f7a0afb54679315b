"""Tables: rows that are kept by key, joins of tables, and the changes that leave them."""
