"""Six short pages of our own, each with claims that are true, untrue, and not to be told.

`own_pages.txt` holds, for each language, `== LANG`, the page, `--`, and lines `OUTCOME | CLAIM`. An
outcome is a verdict, or `untrue`: contradicted or unclear, and never ticked.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Case(NamedTuple):
    """A claim about the page of its language, and the outcome that is wanted."""

    lang: str
    wanted: str
    claim: str

    def meets(self, verdict: str) -> bool:
        """Tells whether a verdict is what is wanted."""
        untrue = self.wanted == "untrue" and verdict in ("contradicted", "unclear")
        return untrue or verdict == self.wanted


def _read() -> tuple[dict[str, str], list[Case]]:
    pages, cases = {}, []
    text = Path(__file__).with_suffix(".txt").read_text("utf-8")
    for section in text.split("== ")[1:]:
        lang, _, rest = section.partition("\n")
        pages[lang], _, lines = rest.partition("\n--\n")
        for line in lines.splitlines():
            wanted, _, claim = line.partition(" | ")
            cases.append(Case(lang, wanted, claim))
    return pages, cases


PAGES, CASES = _read()
