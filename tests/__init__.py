"""The tests. A package, so that tests/browser can be one of its own."""
