"""`searchloop COMMAND ...`: finds the command, runs it, turns errors into one sentence and a code.

Exit codes: 0 ok, 1 failed, 2 bad usage or input, 3 a limit was reached, 130 stopped. A command is
the module `cli.NAME` with `run(args) -> int`; it is imported only when it is asked for.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

VERSION = "0.1.0"
OK, FAILED, BAD_INPUT, LIMIT, STOPPED = 0, 1, 2, 3, 130


def main(argv: list[str] | None = None) -> int:
    """The console script."""
    argv = sys.argv[1:] if argv is None else argv
    if argv in (["--version"], ["-V"]):
        print(f"searchloop {VERSION}")
        return OK
    args = import_module("cli.parser").parse(argv)
    try:
        code: int = import_module(f"cli.{args.module}").run(args)
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return STOPPED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except import_module("cli.errors").KNOWN as error:
        return int(import_module("cli.errors").report(error, args))
    return code
