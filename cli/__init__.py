"""The command line `searchloop`: one module for each group of commands, named in `cli.main`.

How a command ends: 0 ok, 1 failed, 2 bad usage or input, 3 a limit was reached, 130 stopped.
"""

if __name__ != "searchloop.cli":  # one identity: both names are found from the root
    raise ImportError("cli is a part of searchloop: import searchloop.cli")

OK, FAILED, BAD_INPUT, LIMIT, STOPPED = 0, 1, 2, 3, 130
