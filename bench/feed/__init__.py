"""What topics are filled with, and who fills them."""
