"""Records of topics decoded, and made rows for the operators that want them."""
