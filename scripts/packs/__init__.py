"""Modules of make_packs.py, one for each pack."""
