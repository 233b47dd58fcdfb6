"""Runs beyond one process: Ray clusters, shards and merging."""
