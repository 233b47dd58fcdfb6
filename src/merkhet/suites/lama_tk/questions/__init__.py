"""Questions about facts with times: statements with one thing masked, and queries in words that were never stored."""
