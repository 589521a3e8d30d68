"""What people read of verdicts: one sentence a verdict, and passages without signs of Markdown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.search.verdict_words import VERDICTS, evidence, findings, placed, plain, told
from searchloop.agent.types import VerdictName
from searchloop.render.words import words_of
from tests.tables import each_row

ROOT = Path(__file__).resolve().parents[3]
ENGLISH = words_of("en")
WORDS = {name: str(ENGLISH[f"verdict.{name}"]) for name in VERDICTS}


def marks(*verdicts: str | None) -> list[dict[str, Any]]:
    """Marks with these verdicts."""
    return [{"verdict": verdict} for verdict in verdicts]


def test_each_verdict_has_its_own_words() -> None:
    """Six verdicts, six sentences; none accuses where the check cannot tell."""
    assert set(WORDS) == set(get_args(VerdictName))
    assert len(set(WORDS.values())) == len(WORDS)
    assert "not" not in WORDS["unclear"].split()


def test_the_document_has_the_words_of_the_page() -> None:
    """The table of the document says what every surface says."""
    document = (ROOT / "docs/guides/search-switch.md").read_text("utf-8")
    assert dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", document, re.M)).items() >= WORDS.items()


def test_a_source_is_summed_up_by_its_places() -> None:
    """One verdict, one that holds at all places, several; nothing where nothing was checked."""
    assert told(marks("quoted"), ENGLISH) == ["These words stand in the source"]
    assert told(marks("supported", "supported"), ENGLISH) == ["2 places: The source says so"]
    assert told(marks("supported", "contradicted", "supported", None), ENGLISH) == [
        "1 of 3 places: The source says otherwise",
        "2 of 3 places: The source says so",
    ]
    for unchecked in (marks(None, None), [{}], marks("of another version")):
        assert told(unchecked, ENGLISH) == []


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
    assert evidence(mark, ENGLISH) == words.replace("*", WORDS.get(mark["verdict"], ""))


ANSWER = "It is so [1]. The old bridge was opened in 1931 [1]. Nobody swims [1][2]. It is so [1]."


def cited(*verdicts: str) -> list[dict[str, Any]]:
    """One source, cited at the first places of ANSWER with these verdicts."""
    places = [[found.start(), found.end()] for found in re.finditer(r"\[1\]", ANSWER)]
    pairs = zip(places, verdicts, strict=False)
    return [{"n": 1, "marks": [{"span": span, "verdict": verdict} for span, verdict in pairs]}]


def test_several_findings_name_their_places() -> None:
    """Each begins with the answer's own words there; equal findings are told once."""
    [source] = placed(ANSWER, cited("supported", "unclear", "unread", "supported"))
    assert list(findings(source["marks"], ENGLISH)) == [
        "It is so → (The source says so)",
        "The old bridge was opened in 1931 → (The check cannot tell)",
        "Nobody swims → (Not read here, only found)",
    ]
    [source] = placed(ANSWER, cited("unclear", "unclear"))
    assert findings(source["marks"], ENGLISH) == {"(The check cannot tell)": "unclear"}


def test_a_finding_that_quotes_the_answer_names_no_place() -> None:
    """The same words twice would say nothing more."""
    marks = cited("quoted", "supported")
    for mark, words in zip(marks[0]["marks"], ("So it is. It is so", "1931"), strict=True):
        mark["passage"] = words
    [source] = placed(ANSWER, marks)
    assert list(findings(source["marks"], ENGLISH)) == [
        "“So it is. It is so” (These words stand in the source)",
        "The old bridge was opened in 1931 → “1931” (The source says so)",
    ]


def test_a_place_without_words_is_told_without_them() -> None:
    """A mark that stands nowhere, as in old chats; and long words lose their end."""
    long = f"The first {'word ' * 76}more [1]."
    span = [long.index("["), long.index(".")]
    marks = [{"span": None, "verdict": "unread"}, {"span": span, "verdict": "unclear"}]
    [source] = placed(long, [{"n": 1, "marks": marks}])
    first, second = findings(source["marks"], ENGLISH)
    assert first == "(Not read here, only found)"
    assert second.startswith("The first word ")
    assert second.endswith(" word… → (The check cannot tell)")
    assert len(second) < 100


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


SIGNS = ["*", "_", "`", "[", "](", ")", "![", "\\", "|", "\n", "\n- ", "\n> ", "# ", "~", "a", " "]


@given(st.lists(st.sampled_from(SIGNS), max_size=60).map("".join))
def test_any_mixture_of_signs_keeps_its_letters(text: str) -> None:
    """Letters survive, unless they stand in an address or name a fence's language, on one line."""
    shown = plain(text)
    assert "\n" not in shown
    if "](" not in text and "```" not in text and "~~~" not in text:
        assert shown.count("a") == text.count("a")
