"""Questions about language and about what texts say: clozes in natural sentences, and words compared by sense."""
