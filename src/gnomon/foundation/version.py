"""The version of gnomon."""

__version__ = "0.1.0"
