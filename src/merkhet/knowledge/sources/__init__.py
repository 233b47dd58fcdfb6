"""One module a format: each reads a place and gives a Chunk."""
