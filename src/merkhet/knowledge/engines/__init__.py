"""Engines that run merkhet's relational plans: DuckDB in this process, or Spark on this machine or a cluster."""
