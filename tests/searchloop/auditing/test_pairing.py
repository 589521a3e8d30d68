"""Which sentence of a report cites which address, in the shapes that people and programs write."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from searchloop.auditing.pairing import Paired, pair

_CASES = (Path(__file__).parent / "reports.txt").read_text("utf-8").replace("§", "\r")
CASES = re.findall(r"^=== (.+)\n([\s\S]*?)\n---\n([\s\S]*?)(?=^=== |\Z)", _CASES, re.MULTILINE)


def cited(found: Paired, words: str) -> list[str]:
    """What the sentence with these words cites; of a mark without an address its label."""
    [sentence] = [s for s in found.sentences if words in s.claim]
    return [each.url or f"?{each.mark}" for each in sentence.cited]


@pytest.mark.parametrize(("name", "text", "expected"), CASES, ids=[case[0] for case in CASES])
def test_each_shape_of_a_report_is_paired(name: str, text: str, expected: str) -> None:
    """The sentence with the words on the left cites the addresses on the right; `*` is the list."""
    found = pair(text)
    for line in expected.strip().splitlines():
        words, _, urls = line.partition(" => ")
        wanted = [] if urls == "-" else urls.split()
        assert (list(found.listed) if words == "*" else cited(found, words)) == wanted, found
    for sentence in found.sentences:
        assert 0 <= sentence.start < sentence.end <= len(text)
        assert "http" not in sentence.claim
        assert not re.search(r"\]\(|【", sentence.claim)
