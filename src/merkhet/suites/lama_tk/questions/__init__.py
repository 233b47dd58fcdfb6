"""Questions about facts with times: masked statements, and queries in other words."""
