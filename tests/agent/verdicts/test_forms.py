"""Units, scales, dates, shares, lists and denials, as many languages and scripts write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.labelled import read
from searchloop.agent.verdicts.check import check
from searchloop.agent.verdicts.page import Page
from searchloop.analysis.language import language
from tests.tables import each_row

_HERE = Path(__file__).parent
_TICKED = ("supported", "quoted")
_ACCUSED = ("contradicted", "misquoted")


@each_row(
    ("name", "recognised", "ticked"),
    [
        ("forms.txt", 0.96, 0.24),  # sentences of a page, and the same with one thing changed
        ("quantities.txt", 0.49, 0.09),  # and true bounds, roundings, units, dates, ages
        ("written.txt", 0.50, 0.15),  # claims as models write them
        ("unseen.txt", 0.18, 0.06),  # the same, in other words and counted together
        ("unseen_two.txt", 0.08, 0.08),
    ],
)
def test_true_claims_are_recognised_and_never_accused(
    name: str, recognised: float, ticked: float
) -> None:
    """Of sets of claims so many true ones are recognised, at most so many untrue ones ticked.

    An untrue sentence takes the tick of a true one before it: a third of such pairs once had it.
    """
    said: dict[bool, list[str]] = {True: [], False: []}
    pages: dict[str, Page] = {}
    true, pairs = dict[str, str](), list[bool]()
    for each in read(_HERE / name):
        page = pages.setdefault(each.text, Page(each.text))
        found = check(each.claim, page).verdict
        said[each.right].append(found)
        assert not each.right or found not in _ACCUSED, each.claim
        if each.right and found in _TICKED:
            true[each.text] = each.claim
        elif not each.right and found not in _TICKED and each.text in true:
            both = f"{true.pop(each.text)} {each.claim}"
            pairs.append(check(both, page).verdict in _TICKED)
    assert sum(pairs) <= 0.06 * len(pairs)
    shares = {right: sum(v in _TICKED for v in said[right]) / len(said[right]) for right in said}
    assert shares[True] >= recognised
    assert shares[False] <= ticked


# A sentence, and the same denied.
_DENIED = Path(__file__).with_name("denials.txt").read_text("utf-8").splitlines()


@each_row("pair", _DENIED, ids=lambda text: text[:24])
def test_a_denial_takes_the_tick_in_any_language(pair: str) -> None:
    """Whichever of the two the page says."""
    said, _, denied = pair.partition(" | ")
    assert check(said, Page(said)).verdict in _TICKED
    assert check(denied, Page(said)).verdict not in _TICKED
    assert check(said, Page(denied)).verdict not in _TICKED


# What stands around a sentence of a page, so that the page is of one language.
_FRAMES = {
    "en": ("The report is from May.", "It has ninety pages."),
    "de": ("Der Bericht ist vom Mai.", "Er hat neunzig Seiten."),
    "es": ("El informe es de mayo.", "Tiene noventa páginas."),
    "fr": ("Le rapport date du mois de mai.", "Il a quatre-vingt-dix pages."),
    "zh": ("这份报告是五月发表的。", "共有九十页。"),
    "ja": ("報告書は五月に出た。", "九十ページある。"),
}
# A sentence, and the same in doubt.
_DOUBTED = Path(__file__).with_name("doubts.txt").read_text("utf-8").splitlines()


@each_row("pair", _DOUBTED, ids=lambda text: text.partition(" | ")[2][:40])
def test_what_the_page_doubts_gets_no_tick(pair: str) -> None:
    """It is not accused, and a claim that keeps the doubt is supported."""
    said, _, doubted = pair.partition(" | ")
    before, after = _FRAMES[language(said) or "fr"]
    page = Page(f"{before} {doubted} {after}")
    assert check(said, page).verdict == "unclear"
    assert check(doubted, page).verdict in _TICKED
    assert check(said, Page(said)).verdict in _TICKED


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
