"""Fixtures of several tests of knowledge."""

from spark_sessions import spark  # noqa: F401
