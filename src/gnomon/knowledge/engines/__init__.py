"""Engines that run gnomon's relational plans: DuckDB in this process, or Spark on this machine or a cluster."""

from gnomon.knowledge.engines.closing import close_over
from gnomon.knowledge.engines.duck import DuckTables
from gnomon.knowledge.engines.tables import Tables

__all__ = ["DuckTables", "Tables", "close_over"]
