"""Quickstart suite: a first test of a model's knowledge, on the embedded packs or on the user's facts."""
