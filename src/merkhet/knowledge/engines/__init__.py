"""Engines for merkhet's SQL queries: DuckDB in this process, or Spark on this machine or a cluster."""
