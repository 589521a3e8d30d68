"""Engines of vendors that want a key: one file each."""
