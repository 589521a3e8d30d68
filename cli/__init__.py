"""The command line: `searchloop`."""
