"""The command line `searchloop`: one module for each group of commands, named in `cli.main`."""
