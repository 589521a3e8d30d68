"""Numbers that a claim works out from two of the page, and other values of one thing."""

from __future__ import annotations

import random
import re
from pathlib import Path

from bench.labelled import read
from searchloop.agent.verdicts.check import check
from searchloop.agent.verdicts.page import Page
from tests.tables import each_row

_MILL = (
    "The Orrin mill employed 240 people in 1998 and 180 in 2004. Its owners spent 40 million "
    "crowns on a new roof, of which the county paid 30 percent. A bed in the hostel beside it is "
    "24 euros, breakfast 6 euros more. Of 960 windows 120 were broken. The lift takes 12 people "
    "and has 8 stops. Entry to the tower is 9 euros. Visitors wait at most 20 minutes."
)
_FELL = "Unemployment fell from 7.9 percent to 5.1 percent between March 2019 and June 2021."
_TABLE = (
    "| £ million | 2021 | 2020 |\n|---|---|---|\n| Revenue | 660.0 | 600.0 |\n"
    "| Net debt | 143.0 | 168.5 |\n\n"
    "| Cabin | Low season | High season |\n|---|---|---|\n| Otter | 68.00 | 112.00 |\n"
    "| Heron | 95.00 | 149.00 |\n"
)


@each_row(
    ("page", "claim", "verdict"),
    [
        (_MILL, "Between 1998 and 2004 the Orrin mill lost a quarter of its people.", "supported"),
        (_MILL, "The owners of the mill had to pay 28 million crowns for the roof.", "supported"),
        (_MILL, "A bed in the hostel with breakfast comes to 30 euros.", "supported"),
        (_MILL, "About 13 percent of the windows of the mill were broken.", "supported"),
        (_MILL, "Of the windows of the old mill, one in eight was broken.", "supported"),
        (_MILL, "A bed in the hostel with breakfast comes to 32 euros.", "unclear"),
        (_MILL, "A bed in the hostel with breakfast comes to more than 30 euros.", "unclear"),
        (_MILL, "A bed in the hostel with breakfast comes to more than 29 euros.", "supported"),
        (_MILL, "About 17 percent of the windows of the mill were broken.", "unclear"),
        (_MILL, "A third of the windows were broken.", "unclear"),
        (_TABLE, "Revenue grew by 10 percent to £660 million in 2021.", "supported"),
        (_TABLE, "Net debt was reduced by £25.5 million over the year.", "supported"),
        (_TABLE, "In high season, the Heron cabin costs €37 more than the Otter.", "supported"),
        (_TABLE, "In high season, the Heron cabin costs €39 more than the Otter.", "unclear"),
        (_TABLE, "Revenue came to £660 billion in 2021.", "unclear"),
        (_FELL, "Unemployment fell by 2.8 percentage points by June 2021.", "supported"),
        (
            _FELL,
            "Unemployment fell by 2.9 percentage points between March 2019 and June 2021.",
            "unclear",
        ),
        (_FELL, "Unemployment fell by 2.8 percent between March 2019 and June 2021.", "unclear"),
        (_MILL, "Entry to the tower is 19 euros.", "contradicted"),
        (_MILL, "Visitors wait at least 20 minutes.", "contradicted"),
    ],
)
def test_a_number_worked_out_from_two_is_recognised(page: str, claim: str, verdict: str) -> None:
    """A right sum, share or change gets its tick, a wrong one does not; no right one is accused."""
    found = check(claim, Page(page))
    assert found.verdict == verdict, found


def test_two_rows_support_what_is_said_of_both() -> None:
    """The passage reaches from one to the other."""
    found = check("In high season, the Heron costs €37 more than the Otter.", Page(_TABLE))
    assert "Otter" in found.passage
    assert "Heron" in found.passage


def test_a_page_full_of_numbers_is_read_within_bounds() -> None:
    """Each sentence and table gives so many numbers and no more."""
    rows = "".join(f"| Row {n} | {n}.5 | {n * 7} |\n" for n in range(2_000))
    page = Page(
        f"| Name | First | Second |\n|---|---|---|\n{rows}\n" + "1, 2, 3, 4, 5, 6. " * 2_000
    )
    assert check("The first row has 12,345 metres and a third of it.", page).verdict == "unclear"


def test_another_number_hardly_comes_out_by_chance() -> None:
    """In claims as models write them, tables among their pages, one number is exchanged."""
    chance, ticked, changed = random.Random(5), 0, 0
    for each in read(Path(__file__).with_name("unseen.txt")):
        if found := list(re.finditer(r"\d[\d,.]*\d|\d", each.claim)):
            start, end = chance.choice(found).span()
            digits = re.sub(r"\d", lambda _: str(chance.randint(1, 9)), each.claim[start:end])
            if digits != each.claim[start:end]:
                claim = each.claim[:start] + digits + each.claim[end:]
                ticked += check(claim, Page(each.text)).verdict == "supported"
                changed += 1
    assert changed > 150
    assert ticked <= 0.06 * changed
