"""Dead letters: listed, and put through their pipeline again."""
