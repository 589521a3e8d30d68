"""What people read of verdicts: one sentence a verdict, and passages without signs of Markdown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.types import VerdictName
from searchloop.agent.verdicts.words import WORDS, evidence, plain, told
from tests.tables import each_row

ROOT = Path(__file__).resolve().parents[3]


def marks(*verdicts: str | None) -> list[dict[str, Any]]:
    """Marks with these verdicts."""
    return [{"verdict": verdict} for verdict in verdicts]


def test_each_verdict_has_its_own_words() -> None:
    """Six verdicts, six sentences; none accuses where the check cannot tell."""
    assert set(WORDS) == set(get_args(VerdictName))
    assert len(set(WORDS.values())) == len(WORDS)
    assert "not" not in WORDS["unclear"].split()


def test_the_page_and_its_document_have_the_same_words() -> None:
    """The English catalogue of the page and the table of the document say what Python says."""
    catalogue = (ROOT / "web/static/locales/en.json").read_text("utf-8")
    assert dict(re.findall(r'"verdict\.([a-z]+ed|[a-z]*un[a-z]+)": "(.*)"', catalogue)) == WORDS
    document = (ROOT / "docs/guides/search-switch.md").read_text("utf-8")
    assert dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", document, re.M)).items() >= WORDS.items()


def test_a_source_is_summed_up_by_its_places() -> None:
    """One verdict, one that holds at all places, several; nothing where nothing was checked."""
    assert told(marks("quoted")) == ["These words stand in the source"]
    assert told(marks("supported", "supported")) == ["2 places: The source says so"]
    assert told(marks("supported", "contradicted", "supported", None)) == [
        "1 of 3 places: The source says otherwise",
        "2 of 3 places: The source says so",
    ]
    assert told(marks(None, None)) == told([{}]) == told(marks("of another version")) == []


@each_row(
    ("mark", "words"),
    [
        ({"verdict": None, "quote": "so"}, "“so”"),
        ({"verdict": None}, ""),
        ({"verdict": "quoted", "quote": "so", "passage": "*so* it is"}, "“so it is” (*)"),
        ({"verdict": "misquoted", "quote": "no", "passage": "so"}, "“no” (*; nearest there: “so”)"),
        ({"verdict": "contradicted", "passage": "so"}, "“so” (*)"),
        ({"verdict": "unclear", "passage": "so"}, "(*; nearest there: “so”)"),
        ({"verdict": "unclear", "passage": None}, "(*)"),
        ({"verdict": "unread", "quote": "[*so*](u)"}, "“so” (*)"),
    ],
)
def test_a_place_shows_what_its_verdict_rests_on(mark: dict[str, Any], words: str) -> None:
    """The passage as text, said to be only the nearest where it does not bear the claim out."""
    assert evidence(mark) == words.replace("*", WORDS.get(mark["verdict"], ""))


@each_row(
    ("markdown", "words"),
    [
        ("**Founded 1990.** It [grew](https://x.example/a_(b)) and", "Founded 1990. It grew and"),
        ("| Coast | 06:12 |\n|:--|--:|\n| a \\| b | *2* |", "Coast · 06:12 a | b · 2"),
        ("# Head\n\n- item one\n* item _two_\n\n> - said", "Head item one item two said"),
        ("cut ** in two, [half](https://x…", "cut ** in two, half"),
        ("of it** and _that", "of it and that"),
        ("`a*b_c*` and ``x`` and \\*y\\*", "a*b_c* and x and *y*"),
        ("![a picture](p.png) [![logo](l.png)](u) [**bold** word](u)", "a picture logo bold word"),
        ("```py\nx[1] = 2\n```", "x[1] = 2"),
        ("價格**12.1**元，見[表](u)。", "價格12.1元，見表。"),
        *[(text, text) for text in ("2 * 3, snake_case, 2*3", "-4 °C, $x_1$, a|b [1]", "1990. It")],
    ],
)  # fmt: skip
def test_a_passage_is_read_as_text(markdown: str, words: str) -> None:
    """Signs go, halves of them too; what is no sign stays, to the last character."""
    assert plain(markdown) == words


@given(st.text(st.characters(exclude_characters="\\`*_[]<>#|!~-+ \t", categories=["L", "N", "P"])))
def test_words_without_signs_stay_as_they_are(text: str) -> None:
    """Nothing is lost, and twice is as good as once."""
    assert plain(text) == text == plain(plain(text))


SIGNS = ["*", "_", "`", "[", "](", ")", "![", "\\", "|", "\n", "\n- ", "\n> ", "# ", "~", "a", " "]


@given(st.lists(st.sampled_from(SIGNS), max_size=60).map("".join))
def test_any_mixture_of_signs_keeps_its_letters(text: str) -> None:
    """Letters survive, unless they stand in an address or name a fence's language, on one line."""
    shown = plain(text)
    assert "\n" not in shown
    if "](" not in text and "```" not in text and "~~~" not in text:
        assert shown.count("a") == text.count("a")
