"""The readers that are fuzzed, by what they read."""
