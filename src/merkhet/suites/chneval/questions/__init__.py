"""Questions of chneval: clozes in natural sentences, and comparisons of word senses."""
