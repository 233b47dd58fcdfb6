"""Chat models: an OpenAI-compatible endpoint, or a causal model with a chat template."""
