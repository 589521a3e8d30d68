"""The page in a real browser; a package, so that its tests can share one browser."""
