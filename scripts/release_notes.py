"""Print the notes of a release: its section of CHANGELOG.md.

usage: python scripts/release_notes.py v1.2.3

Exit code 1 and one sentence when tag, version and changelog do not belong together: a release that
nobody described, or that calls itself something else, is not made.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEAD = re.compile(r"^## \[(?P<version>[^\]]+)\](?: - (?P<date>.*))?$", re.M)


def main(arguments: list[str], root: Path = ROOT) -> int:
    """0 when the notes were printed."""
    if len(arguments) != 1:
        print("usage: release_notes.py TAG", file=sys.stderr)
        return 2
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    try:
        print(notes(arguments[0], project["version"], (root / "CHANGELOG.md").read_text("utf-8")))
    except ValueError as problem:
        print(f"release_notes: {problem}", file=sys.stderr)
        return 1
    return 0


def notes(tag: str, version: str, changelog: str) -> str:
    """The text under the heading of `tag`, without it. Raises ValueError."""
    if tag != f"v{version}":
        raise ValueError(f"The tag is {tag}, pyproject.toml says {version}. Make them one.")
    heads = list(HEAD.finditer(changelog))
    ends = [head.start() for head in heads[1:]] + [len(changelog)]
    for head, end in zip(heads, ends, strict=True):
        if head["version"] == version:
            if not re.fullmatch(r"\d{4}-\d\d-\d\d", head["date"] or ""):
                raise ValueError(f"CHANGELOG.md has no date for {version}. Write it: 2026-11-22.")
            if text := changelog[head.end() : end].strip():
                return text
            raise ValueError(f"CHANGELOG.md says nothing of {version}. Write what changes.")
    raise ValueError(f"CHANGELOG.md has no section [{version}]. Write one.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
