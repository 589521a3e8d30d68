"""How much of a claim must stand in the source, and how close together."""

from __future__ import annotations

from searchloop.agent.verdicts.check import check
from searchloop.agent.verdicts.page import Page
from tests.tables import each_row

_PLANETS = (
    "The telescope follows Earth, Mars and the other planets of our sun. Its mirror was cast in "
    "Leiden by a firm of glass makers. Geranium, a restaurant in Copenhagen, is known for its "
    "three Michelin stars and for the view over the park."
)
_LAPTOP = (
    "The laptop has a fast processor and can handle the daily work of an office with ease. Its "
    "keyboard is fixed to a strong frame, so that it is a highly rugged machine. A detachable "
    "screen for computing on the road makes the device portable, and the abacus on its lid is the "
    "mark of the firm."
)
_TAX = (
    "The 1953 Act separated the financing of education for Africans from general state spending "
    "and linked it to direct tax paid by Africans themselves, with the result that far less was "
    "spent on black children than on white children. It stayed in force for a generation."
)


@each_row(
    "row",
    [
        (_PLANETS, "The telescope follows the planets of our sun.", "supported"),
        (_LAPTOP, "The laptop can handle the work of an office with ease.", "supported"),
        # A long claim may say some of it in other words.
        (
            _TAX,
            "The law, which separated the financing of schooling for Africans from general state "
            "expenditure, coupled it to direct tax paid by Africans themselves, so that far less "
            "money went to black children than to white children.",
            "supported",
        ),
    ],
)
def test_a_tick_needs_enough_of_the_claim_close_together(row: tuple[str, str, str]) -> None:
    """The fewer words a claim has, the more of them; scattered words say something else."""
    page, claim, wanted = row
    found = check(claim, Page(page))
    assert found.verdict == wanted, (claim, found)


def test_other_forms_of_a_word_stand_for_it() -> None:
    """Korean verbs change their endings; English has `satisfied` and `satisfaction`."""
    page = Page("이 다리는 김민수가 설계하고 박지훈이 건설했다.")
    assert check("이 다리는 김민수가 설계했다.", page).verdict == "supported"
    page = Page("In 2019, 71% of residents were satisfied with the bridge, up from 58% in 2012.")
    claim = "Satisfaction rose to 71% in 2019, up from 58% in 2012."
    assert check(claim, page).verdict == "supported"
    assert check(claim.replace("Satisfaction", "Crime"), page).verdict == "unclear"
