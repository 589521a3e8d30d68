"""Reads sets of claims that people have labelled, each by the form of its lines.

AttributionBench, WiCE (claims), symmetric FEVER and Climate-FEVER as their authors publish them,
and files in the form of `tests/agent/verdicts/written.txt`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple


class Labelled(NamedTuple):
    """A claim with its source, and whether people say that the source supports it."""

    group: str
    claim: str
    text: str
    right: bool


def read(file: Path) -> Iterator[Labelled]:
    """Yields the claims of one file; what is partially supported is not supported."""
    if file.suffix == ".txt":
        yield from _sections(file)
        return
    with file.open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            yield from _row(row, file.stem)


def _row(row: dict[str, Any], name: str) -> Iterator[Labelled]:
    claim = row["claim"]
    if "attribution_label" in row:
        text = "\n\n".join(row["references"] or row["webpage_references"])
        right = row["attribution_label"] == "attributable"
        yield Labelled(f"{name} {row['src_dataset']}", claim, text, right)
    elif "evidences" in row:
        for each in row["evidences"]:
            yield Labelled(name, claim, each["evidence"], each["evidence_label"] == "SUPPORTS")
    elif isinstance(row["evidence"], list):
        yield Labelled(name, claim, "\n".join(row["evidence"]), row["label"] == "supported")
    else:
        yield Labelled(name, claim, row["evidence"], row["label"] == "SUPPORTS")


def _sections(file: Path) -> Iterator[Labelled]:
    """Reads `==`, a page, `--`, and lines `true | CLAIM`, `untrue | CLAIM`, `unknown | CLAIM`."""
    for section in file.read_text("utf-8").split("==\n")[1:]:
        text, _, lines = section.partition("\n--\n")
        for line in filter(str.strip, lines.splitlines()):
            wanted, _, claim = line.partition(" | ")
            yield Labelled(file.stem, claim, text, wanted == "true")
