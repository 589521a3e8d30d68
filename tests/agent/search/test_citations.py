"""Citations: marks become numbered, checked citations; what leads nowhere goes."""

from __future__ import annotations

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.search.citations import settle
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.types import Citation, Mark, Message
from tests.growth import check_growth
from tests.tables import each_row

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


@each_row(
    ("text", "kept"),
    [
        ("Wet [9].", "Wet."),
        ("Wet [9] and [1] dry.", "Wet and [1] dry."),
        ("Wet [1, 9].", "Wet [1]."),
        ("Wet [1;2].", "Wet [1][2]."),
        ("Wet [1], [9]. Dry [1] and [9].", "Wet [1]. Dry [1]."),
        ("Wet ([1], [9]). Dry [8], [9].", "Wet ([1]). Dry."),
        ("Wet [1]-[9], [2]/[9], [3] & [9]. Dry [1] - [9] –[8].", "Wet [1], [2], [3]. Dry [1] - –."),
        ("**Wet [9].** **Dry [9]**", "**Wet.** **Dry**"),
        ("See [9]. Show [8], [9].", None),
        ("Wet [9, 8]", None),
        ("Wet [0]", None),
        ("[9] first", None),
        ("Wet [12345] [x] [ 1 ] [-1] [1.5]", None),
    ],
)
def test_unknown_numbers_are_removed(text: str, kept: str | None) -> None:
    """A mark of a number nobody gave is removed; what may be no mark is left and never linked."""
    assert settled(text).content == (text if kept is None else kept)


def test_without_sources_text_is_text() -> None:
    """With nothing met, brackets are the model's own words; a provider's text is not touched, and
    its citations get the session's numbers."""
    message = Message("assistant", "Array[0] and [1].")
    assert settle(message, SourceTable()) is message
    own = Citation(1, "https://new.example/", "New", (Mark((0, 3)),))
    message = settle(Message("assistant", "Wet [7]", citations=(own,)), table())
    assert message.content == "Wet [7]"
    assert [(c.n, c.spans) for c in message.citations] == [(4, ((0, 3),))]


@each_row(
    ("answer", "verdict"),
    [
        ("It “opened in 1932, after eight years of work” [1]", "quoted"),
        ('The page says "It is 1,149 metres long. Its arch bears trains" [1]', "quoted"),
        ("“nobody BELIEVED it would stand” [1]", "quoted"),
        ("“somebody believed it would stand” [1]", "misquoted"),
        ("The old bridge opened in 1932 after eight years of work [1].", "supported"),
        ("The old bridge opened in 1933 after eight years of work [1].", "contradicted"),
        ("The old bridge did not open in 1932 after eight years of work [1].", "contradicted"),
        ("Penguins live in the far south [1].", "unclear"),
        ("Wet [2].", "unread"),
    ],
)
def test_each_mark_has_its_verdict(answer: str, verdict: str) -> None:
    """The six verdicts, and what older readers see of them."""
    (citation,) = settled(answer, PAGE).citations
    (mark,) = citation.marks
    assert mark.verdict == verdict
    good, bad = ("quoted", "supported"), ("misquoted", "contradicted")
    assert mark.verified is (True if verdict in good else False if verdict in bad else None)
    assert citation.verified is mark.verified


@each_row(
    "text",
    [
        "“The old bridge opened in 1932” [1]. “It was painted bright green” [1].",
        "“The old bridge opened in 1932” and “it was painted bright green” [1].",
        "It is “painted bright green by its builders” [1]. “The old bridge opened in 1932” [1].",
        "“It was painted bright green. The old bridge opened in 1932.” [1]",
    ],
)
def test_a_true_quotation_excuses_no_false_one(text: str) -> None:
    """Every quotation that bears the number is compared, not only the first or the longest; each
    mark shows its own passage, in the page's words."""
    (citation,) = settled(text, PAGE).citations
    assert citation.verified is False
    assert "painted bright green" in (citation.quote or "")
    assert all(m.passage is None or m.passage in PAGE for m in citation.marks)


@each_row(
    ("text", "verdicts"),
    [
        ("The old bridge opened in 1932 [1] and is 2,149 metres long [1].", "sc"),
        ("The old bridge opened in 1942 [1] and its arch bears trains and cars [1].", "cs"),
        ("According to [1], the old bridge opened in 1932.", "s"),
        ("According to [1], the old bridge opened in 1942.", "c"),
        ("The old bridge opened in 1932.[1] It is 1,149 metres long. [1]", "ss"),
        ("- The old bridge opened in 1932 [1]\n- It is 2,149 metres long [1]", "sc"),
        ("The bridge, as Dr. Smith says, opened in 1932 after eight years of work [1].", "u"),
    ],
)
def test_a_mark_speaks_for_the_words_before_it(text: str, verdicts: str) -> None:
    """Two marks in a sentence share it; an abbreviation ends none; a mark may come first."""
    (citation,) = settled(text, PAGE).citations
    assert "".join((m.verdict or "-")[0] for m in citation.marks) == verdicts


FERRY = "The ferry of Tolby carries forty cars and leaves every hour from the northern pier."


@each_row(
    ("claim", "verdicts"),
    [
        ("and the ferry of Tolby carries forty cars [1][2].", "ss"),
        ("and the ferry of Tolby carries forty cars [1, 2].", "ss"),
        ("and the ferry of Tolby carries fifty cars [1][2].", "uu"),
        ("and the ferry of Tolby never carries cars [1][2].", "uu"),
        ("and the gardens of Tolby are open to visitors [1][2].", "uu"),
        ("and the ferry of Tolby carries forty cars [1][2][3].", "uuu"),
        ("and the ferry of Tolby “carries forty old cars” [1][2].", "um"),
    ],
)
def test_pages_of_one_place_are_judged_together(claim: str, verdicts: str) -> None:
    """One page says A, the other B; each must hold a share, and what is unread says nothing."""
    text = f"The old bridge opened in 1932 after eight years of work, {claim}"
    found = settled(text, PAGE, FERRY).citations
    marks = [mark for citation in found for mark in citation.marks]
    assert "".join((mark.verdict or "-")[0] for mark in marks) == verdicts
    assert all((mark.passage or "") in (PAGE + FERRY) for mark in marks)


def test_a_providers_own_passage_is_compared_too() -> None:
    """The claim is what the provider's range holds, and its quote stays."""
    text = "The old bridge opened in 1932 after eight years of work."
    marks = (Mark((0, len(text)), "opened in 1932"), Mark(None, "Its arch"))
    given = Citation(1, "https://s1.example/", "", marks)
    message = settle(Message("assistant", text, citations=(given,)), table(PAGE))
    (citation,) = message.citations
    assert [m.verdict for m in citation.marks] == ["supported", "unclear"]
    assert [m.quote for m in citation.marks] == ["opened in 1932", "Its arch"]
    assert {m.by for m in citation.marks if m.span} == {"words"}


@each_row(
    ("quote", "text", "verdict"),
    [
        ("The old bridge opened in 1932, yes.", "The old bridge opened in 1932.", "supported"),
        ("The old bridge opened in 1932.", "The old bridge opened in 1931.", "contradicted"),
        ("opened in 1932", "The old bridge opened in 1932 after a long quarrel.", "unclear"),
        ("It opened late.", 'The mayor said: "We are very proud of it."', "unclear"),
    ],
)
def test_a_providers_passage_is_compared_before_its_page_is_read(
    quote: str, text: str, verdict: str
) -> None:
    """The verdict names the provider; what is not in the passage may stand in the page."""
    given = Citation(1, "https://s1.example/", "", (Mark((0, len(text)), quote), Mark(None, "So")))
    message = settle(Message("assistant", text, citations=(given,)), table())
    mark, placeless = message.citations[0].marks
    assert (mark.verdict, mark.by, mark.quote) == (verdict, "provider", quote)
    assert (placeless.verdict, placeless.by) == ("unread", None)
    assert settle(message, table()) is message


@given(
    st.lists(
        st.sampled_from(
            [
                *("The old bridge opened in 1932 [1].", "It is green [1].", "Wet [9].", " "),
                *("“Nobody believed it would stand” [2]", "\n\n", "items[1]", "`a[1]`"),
            ]
        )
    )
)
def test_settling_twice_changes_nothing(pieces: list[str]) -> None:
    """A crash between an answer and the end of its run lets another process settle it again."""
    known = table(PAGE, PAGE)
    once = settle(Message("assistant", " ".join(pieces)), known)
    again = settle(once, known)
    assert (again.content, again.citations) == (once.content, once.citations)


def test_work_is_bounded_and_the_rest_unclear() -> None:
    """An answer of thousands of marks is compared at its first few hundred."""
    (citation,) = settled("The old bridge opened in 1932 [1]. " * 1000, PAGE).citations
    verdicts = [m.verdict for m in citation.marks]
    assert verdicts == ["supported"] * 400 + ["unclear"] * 600


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


@each_row(
    "text",
    [
        *("[" * 100_000, " " * 100_000 + "[9]" + " " * 100_000 + "[1]", "`" * 99_999 + "x"),
        *("`" * 100_000, "```\n" * 25_000, "> " * 50_000 + "[1]", "[1," * 33_000, "[1]" * 33_000),
        *("[1" + ",1" * 50_000, ("x" + " " * 1300 + "[1] [2] [3]") * 60, "“" * 100_000 + "[1]"),
        *("[9] " * 25_000, "~~~" * 33_000 + "\n", "\n" * 100_000 + "[1]"),
    ],
)
def test_hostile_text_costs_linear_time(text: str) -> None:
    """Four times as much of anything costs about four times as much to settle."""
    check_growth(lambda text: settled(text, PAGE), text, ends=4)


def marked(parts: list[tuple[str, int]]) -> tuple[str, tuple[Citation, ...]]:
    """A text in which a provider wrote marks of its own, and its citations in their order."""
    text, spans = "", {}
    for words, page in parts:
        text += words
        mark = f"[{page}]" if page % 2 else f"[[{page}]](https://v{page}.example/)"
        spans.setdefault(page, []).append((len(text), len(text) + len(mark)))
        text += mark
    cited = tuple(
        Citation(n, f"https://v{page}.example/", "", tuple(map(Mark, spans[page])))
        for n, page in enumerate(spans, 1)
    )
    return text, cited


@given(st.lists(st.tuples(st.text("ab .🌊", max_size=9), st.integers(1, 12)), max_size=12))
def test_a_provider_s_marks_get_the_session_s_numbers(parts: list[tuple[str, int]]) -> None:
    """Each mark reads as the number of its page; words stay, and nothing changes twice."""
    text, cited = marked(parts)
    sources = table()
    message = settle(Message("assistant", text, citations=cited), sources)
    bare = "".join(words + "[]" for words, _ in parts)
    assert re.sub(r"\[\d+\]", "[]", message.content) == bare
    for citation in message.citations:
        assert sources.numbered(citation.n).url == citation.url
        read = [message.content[a:b] for a, b in citation.spans]
        assert read == [f"[{citation.n}]"] * len(read)
    order = [f"https://v{page}.example/" for _, page in parts]
    numbers = [int(n) for n in re.findall(r"\[(\d+)\]", message.content)]
    assert [sources.numbered(n).url for n in numbers] == order
    again = settle(message, sources)
    assert (again.content, again.citations) == (message.content, message.citations)


@given(
    st.lists(st.tuples(st.text("ab 🌊", max_size=3), st.integers(1, 4)), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 99), st.integers(1, 99))),
)
def test_any_span_beside_marks_stays_in_the_text(
    parts: list[tuple[str, int]], spans: list[tuple[int, int]]
) -> None:
    """Also one that begins or ends inside of a mark that is written anew."""
    text, cited = marked(parts)
    inside = [Mark((a, min(a + long, len(text)))) for a, long in spans if a < len(text)]
    cited += (Citation(9, "https://v9.example/", "", tuple(inside)),)
    message = settle(Message("assistant", text, citations=cited), table())
    places = [span for citation in message.citations for span in citation.spans]
    assert all(0 <= start < end <= len(message.content) for start, end in places)


def test_marks_of_several_pages_or_of_none_and_spans_beside_them() -> None:
    """One mark of two pages becomes two, and a range behind it moves along; a number of no page
    goes, as where Perplexity writes [3] beside two pages; an array stays."""
    text = "Low.[1, 2] Wet and dry, ids = [4], wind [3]. Rain [9]."
    both = Mark((4, 10))
    cited = (
        Citation(1, "https://v1.example/", "", (both,)),
        Citation(2, "https://v2.example/", "", (both, Mark((11, 14)))),
    )
    message = settle(Message("assistant", text, citations=cited), sources := table())
    assert message.content == "Low.[4][5] Wet and dry, ids = [4], wind. Rain."
    read = [[message.content[a:b] for a, b in c.spans] for c in message.citations]
    assert read == [["[4]"], ["[5]", "Wet"]]
    assert settle(message, sources).content == message.content
