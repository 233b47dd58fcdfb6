"""Chat models: models behind an OpenAI-compatible endpoint, and causal models on this machine."""
