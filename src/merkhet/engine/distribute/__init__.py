"""Distribution of a run over several processes: Ray clusters, shards and their merging."""
