"""What comes out: results, what they are made of, and the page that shows them."""
