"""Units, scales, dates, shares, lists and denials, as many languages and scripts write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchloop.agent.verdicts.check import check
from searchloop.agent.verdicts.page import Page
from tests.tables import each_row

_SECTIONS = [
    section
    for name in ("forms.txt", "turns.txt")
    for section in Path(__file__).with_name(name).read_text("utf-8").split("==\n")[1:]
]
_TICKED = ("supported", "quoted")
_ACCUSED = ("contradicted", "misquoted")


@each_row("section", _SECTIONS, ids=lambda text: text[:30])
def test_a_changed_claim_is_never_ticked_and_a_true_one_is(section: str) -> None:
    """One unit, date, share, row, denial, "only", "unlike" or the like makes the difference."""
    text, _, lines = section.partition("\n--\n")
    page = Page(text)
    for line in lines.splitlines():
        wanted, _, claim = line.partition(" | ")
        found = check(claim, page)
        assert (found.verdict in _TICKED) is (wanted == "true"), (claim, found)


# A sentence, and the same denied.
_DENIED = Path(__file__).with_name("denials.txt").read_text("utf-8").splitlines()


@each_row("pair", _DENIED, ids=lambda text: text[:24])
def test_a_denial_takes_the_tick_in_any_language(pair: str) -> None:
    """Whichever of the two the page says."""
    said, _, denied = pair.partition(" | ")
    assert check(said, Page(said)).verdict in _TICKED
    assert check(denied, Page(said)).verdict not in _TICKED
    assert check(said, Page(denied)).verdict not in _TICKED


_MARKS = """
❝❞ ❛❜ ‟” ｢｣ ﹃﹄ ≪≫ ⟪⟫ ⟨⟩ ＇＇ 〝〟 〟〟 “„ ““ 《》 〈〉 【】 〖〗 〔〕 ´´ “" <<.>> ,,.'' ,,." ´´.´´
&quot;.&quot; &laquo;.&raquo;
"""


@pytest.mark.parametrize("marks", _MARKS.split())
def test_an_invented_quotation_is_found_in_rare_marks(marks: str) -> None:
    """A real one in the same marks is quoted."""
    first, last = marks.split(".") if "." in marks else marks
    page = Page("The bridge was opened by the mayor on a cold and rainy morning.")
    real = "opened by the mayor on a cold and rainy morning"
    invented = real.replace("mayor", "king")
    assert check(f"It was {first}{real}{last}.", page).verdict == "quoted"
    assert check(f"It was {first}{invented}{last}.", page).verdict == "misquoted"


def test_at_most_and_no_more_than_are_no_denial_of_each_other() -> None:
    """A red mark would accuse a true sentence."""
    assert (
        check("Use no more than 2 tablets daily.", Page("Use at most 2 tablets daily.")).verdict
        not in _ACCUSED
    )
