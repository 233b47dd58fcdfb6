"""Quickstart: a first look at what a model knows, on the embedded packs or on your own facts."""
