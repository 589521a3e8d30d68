"""`python -m bench`: measures, prints a table, says which targets were met."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path

from bench.clock import WrongResult
from bench.measure import measure
from bench.scenarios import SCENARIOS, smaller
from bench.table import lines, machine, rows


def main(argv: list[str] | None = None) -> int:
    """0 when every run did its work, whatever the targets say; 1 when one did not."""
    names = [s.name for s in SCENARIOS]
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=4, metavar="N", help="default: 4")
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample there")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: does all of it run?")
    args = parser.parse_args(argv)
    chosen = [s for s in SCENARIOS if not args.only or s.name in args.only]
    if args.smoke:
        chosen = list(smaller(chosen))
    about = {"cores": str(os.cpu_count()), **machine()}
    for name, value in about.items():
        print(f"{name}: {value}")
    began = time.monotonic()
    measurements = []
    try:
        for measurement in measure(chosen, max(1, args.rounds)):
            measurements.append(measurement)
            if sys.stderr.isatty():
                at = f"round {measurement.round + 1}/{args.rounds}, {measurement.scenario}"
                print(f"\r{at:<50}", end="", file=sys.stderr)
    except WrongResult as error:
        print(f"\nbench: {error}", file=sys.stderr)
        return 1
    if sys.stderr.isatty():
        print(file=sys.stderr)
    table = rows(chosen, measurements)
    print(f"{args.rounds} rounds in {time.monotonic() - began:.0f} s\n")
    print("\n".join(lines(table, judged=not args.smoke)))
    if args.json:
        told = {"machine": about, "measurements": [asdict(m) for m in measurements]}
        args.json.write_text(json.dumps(told, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
