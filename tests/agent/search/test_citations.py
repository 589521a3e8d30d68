"""Citations: marks become numbered, checked citations; what leads nowhere goes."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.search.citations import ReadPage, claim_before, settle
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.types import Citation, Mark, Message
from tests.waiting import at_cost

PAGE = (
    "The old bridge opened in 1932, after *eight* years of work. It is 1,149 metres long.[4]\n"
    "Its [arch](https://a.example/arch) bears trains and cars. “Nobody believed it would stand,” "
    "said the builder’s daughter."
)


def table(*pages: str) -> SourceTable:
    """Three sources, of which the first ones were read."""
    made = SourceTable()
    for n in range(1, 4):
        made.meet(f"https://s{n}.example/", f"S{n}")
    for n, text in enumerate(pages, 1):
        made.meet(f"https://s{n}.example/", state="opened")
        made.read(f"https://s{n}.example/", text)
    return made


def settled(text: str, *pages: str) -> Message:
    """The message after its marks were looked up."""
    return settle(Message("assistant", text), table(*pages))


def test_marks_become_citations() -> None:
    """Each known number is one citation with all its places; the source becomes cited."""
    message = settled("One [1]. Two [2]. One again [1].")
    assert [(c.n, c.url) for c in message.citations] == [
        (1, "https://s1.example/"),
        (2, "https://s2.example/"),
    ]
    assert [message.content[a:b] for a, b in message.citations[0].spans] == ["[1]", "[1]"]
    assert {s.n: s.state for s in message.sources} == {1: "cited", 2: "cited", 3: "found"}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Wet [9].", "Wet."),
        ("Wet [9] and [1] dry.", "Wet and [1] dry."),
        ("Wet [1, 9].", "Wet [1]."),
        ("Wet [1;2].", "Wet [1][2]."),
        ("Wet [9, 8]", "Wet"),
        ("Wet [0]", "Wet"),
        ("[9] first", " first"),
        ("A [link](https://x.example/) and [3](https://x.example/)", None),
        ("[1]: https://x.example/", None),
        ("Wet [12345] [x] [ 1 ] [-1] [1.5]", None),
    ],
)
def test_unknown_numbers_are_removed(text: str, kept: str | None) -> None:
    """A number nobody gave leaves no trace; a link and other brackets are left as they are."""
    assert settled(text).content == (text if kept is None else kept)


@pytest.mark.parametrize(
    "text",
    [
        "Use `row[9]` there.",
        "Use ``a[9] ` b`` there.",
        "```python\nprint(row[9])\n```",
        "~~~\nrow[1] and row[9]\n~~~",
        "> ```\n> row[9]\n> ```",
        "```\nnever closed [9]",
        "````\n```\nrow[9]\n````",
    ],
)
def test_code_is_left_alone(text: str) -> None:
    """Brackets in code are indices: neither citations nor removed."""
    message = settled(text)
    assert message.content == text
    assert message.citations == ()


def test_tildes_and_ticks_in_prose_are_no_code() -> None:
    """Three tildes inside a line do not hide the marks behind them."""
    message = settled("About ~~~ 5 metres [1], and ```x``` too [9] [2].")
    assert [c.n for c in message.citations] == [1, 2]
    assert "[9]" not in message.content
    assert settled("```x``` is code [9].").content == "```x``` is code."


def test_without_sources_text_is_text() -> None:
    """With nothing met, brackets are the model's own words and nothing is cited."""
    message = Message("assistant", "Array[0] and [1].")
    assert settle(message, SourceTable()) is message


def test_native_citations_keep_their_places() -> None:
    """Annotations of a provider get the session's numbers; its text is not touched."""
    given_by_provider = Citation(1, "https://new.example/", "New", (Mark((0, 3)),))
    message = settle(Message("assistant", "Wet [7]", citations=(given_by_provider,)), table())
    assert message.content == "Wet [7]"
    assert [(c.n, c.spans) for c in message.citations] == [(4, ((0, 3),))]


@pytest.mark.parametrize(
    ("claim", "verified"),
    [
        ("It “opened in 1932, after eight years of work” [1]", True),
        ('The page says "It is 1,149 metres long. Its arch bears trains" [1]', True),
        ("“nobody BELIEVED it would stand” [1]", True),
        ("“somebody believed it would stand” [1]", False),
        ("The bridge opened in 1932 after eight years [1].", True),
        ("The bridge opened in 1933 after eight years [1].", False),
        ("Penguins live in the far south [1].", False),
    ],
)
def test_quotes_are_compared_with_the_page(claim: str, verified: bool) -> None:
    """Literal quotations must stand in the page; other claims need its numbers and words."""
    (citation,) = settled(claim, PAGE).citations
    assert citation.verified is verified


@pytest.mark.parametrize(
    "text",
    [
        "“The old bridge opened in 1932” [1]. “It was painted bright green” [1].",
        "“The old bridge opened in 1932” and “it was painted bright green” [1].",
        "It is “painted bright green” [1]. “The old bridge opened in 1932” [1].",
    ],
)
def test_a_true_quotation_excuses_no_false_one(text: str) -> None:
    """Every quotation that bears the number is compared, not only the first or the longest."""
    (citation,) = settled(text, PAGE).citations
    assert citation.verified is False
    assert "painted bright green" in (citation.quote or "")


def test_each_mark_has_its_own_quote() -> None:
    """What a source says at one place is not said of another, and neither is the verdict."""
    text = "It opened in 1932 after eight years [1]. It has 12 arches [1]. Trains use its arch [1]."
    (citation,) = settled(text, PAGE).citations
    opened, arches, trains = citation.marks
    assert [text[a:b] for a, b in filter(None, (m.span for m in citation.marks))] == ["[1]"] * 3
    assert (opened.verified, arches.verified, trains.verified) == (True, False, True)
    assert "opened in 1932" in (opened.quote or "")
    assert "bears trains" in (trains.quote or "")
    assert citation.verified is False


def test_what_a_provider_quotes_is_compared_at_each_mark() -> None:
    """Two quotes of one page that we have read: one is in it, one is not."""
    marks = (Mark((0, 3), "opened in 1932"), Mark((4, 7), "opened in 1942"), Mark((8, 9)))
    given = Citation(1, "https://s1.example/", "", marks)
    message = settle(Message("assistant", "One two 3", citations=(given,)), table(PAGE))
    (citation,) = message.citations
    assert [m.verified for m in citation.marks] == [True, False, None]
    assert (citation.quote, citation.verified) == ("opened in 1942", False)


def test_a_page_that_was_not_read_verifies_nothing() -> None:
    """Found is not read: no quote, and neither true nor false."""
    (citation,) = settled("Wet [2].", PAGE).citations
    assert (citation.quote, citation.verified) == (None, None)


def test_the_quote_is_the_pages_own_sentence() -> None:
    """For a paraphrase the reader is shown the words of the page it rests on."""
    quote, verified = ReadPage(PAGE).check("The bridge opened in 1932 after eight years")
    assert verified
    assert quote is not None
    assert quote in PAGE


def test_the_claim_is_the_sentence_before_the_mark() -> None:
    """Neighbouring marks share their sentence; list marks are no part of it."""
    text = "First. Second one [1] [2]\n- third [3]"
    assert claim_before(text, text.index("[2]")) == "Second one"
    assert claim_before(text, text.index("[3]")) == "third"
    assert claim_before("[1]", 0) == ""


MARKS = ["[1]", "[2]", "[9]", "[1,2]", "[1, 9]", "[[1]]", "[0001]", "[1](u)", "[", "]", "(", ":"]
CODE = ["`", "```", "\n```", "~~~", "\n~~~\n", ">", "\n"]
WORDS = ["word", "1", "é", "😀", "“", "”", ".", "\t", " "]
PIECES = st.sampled_from([*MARKS, *CODE, *WORDS])


@given(st.lists(PIECES, max_size=40))
def test_spans_always_point_at_their_marks(pieces: list[str]) -> None:
    """Whatever the text: each span slices to `[n]`, spans are in order, and none overlaps."""
    message = settled("".join(pieces), PAGE)
    places = sorted(span for c in message.citations for span in c.spans)
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(places))
    for citation in message.citations:
        assert citation.spans
        for start, end in citation.spans:
            assert message.content[start:end] == f"[{citation.n}]"


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        " " * 100_000 + "[9]" + " " * 100_000 + "[1]",
        "`" * 100_000,
        "`" * 99_999 + "x",
        "```\n" * 25_000,
        "> " * 50_000 + "[1]",
        "[1," * 33_000,
        "[1" + ",1" * 50_000,
        ("x" + " " * 1300 + "[1] [2] [3]") * 60,
        "“" * 100_000 + "[1]",
        "[1]" * 33_000,
        "[9] " * 25_000,
        "~~~" * 33_000 + "\n",
        "\n" * 100_000 + "[1]",
    ],
    ids=range(14),
)
def test_hostile_text_costs_linear_time(text: str) -> None:
    """A hundred thousand of anything is settled in less than a second."""
    at_cost(lambda: settled(text, PAGE), 1)


@pytest.mark.parametrize(
    "unit", ["[", "x", " ", ". ", "`", "|", "](", "[a](", "\n", "“", "[1]", "a b. ", "_*"]
)
def test_hostile_pages_cost_linear_time(unit: str) -> None:
    """A page of 400,000 characters of anything is compared with in a moment."""
    page = unit * (400_000 // len(unit))
    at_cost(lambda: settled("The bridge opened in 1932 after eight years [1].", page), 2)
