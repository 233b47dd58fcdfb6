"""Questions about temporal facts: masked statements, and queries in wordings unseen in training."""
