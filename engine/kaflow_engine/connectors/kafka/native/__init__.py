"""Topics read and written straight from Arrow, where the library of `engine/native` is there."""
