"""Residue: marks that mean nothing to a reader are gone, wherever the text was cut."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from searchloop.agent.search.vendor_marks import Residue, Seen, strip
from tests.tables import cut, each_row

CASES = {
    "Blue \ue200cite\ue202turn0search0\ue202turn1news12\ue201. Next": "Blue. Next",
    "glued\ue200cite\ue202turn0search0\ue201 on": "glued on",
    "a\ue206b\ue300c": "ab\ue300c",
    "word citeturn0search0turn0search1 and more": "word and more",
    "gluedciteturn0search12.": "glued.",
    "as (turn0search1, turn0view2) says [turn0news3].": "as says.",
    "see 【4†source】 and 【12:0†a.pdf】 end": "see and end",
    "[cite_start]A fact.[cite: 1, 2]": "A fact.",
    "turn left, turn12, cite this, [cite], [cited: x], (f), 【plain】": None,
    "a list [1] and a [link](http://x.example/turn0)": None,
    "\ue200 a private sign that opens nothing\nmore": " a private sign that opens nothing\nmore",
    "a\U000e0041\U000e007fb \u202egnp.exe\u202c \u200bc\u2066d\ufeff": "ab gnp.exe cd",
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f wins": None,
    "\U0001f3f4\U000e0068\U000e0069\U000e0064\U000e0065 here": "\U0001f3f4 here",
    "\U0001f468\u200d\U0001f469 می\u200cخواهم \u2764\ufe0f \u0915\u094d\u200d": None,
    "": None,
}


@each_row("text", CASES)
def test_marks_go_and_text_stays(text: str) -> None:
    """Known marks are taken out with the blank before them; what only looks alike stays."""
    expected = CASES[text]
    assert strip(text) == (text if expected is None else expected)


def streamed(pieces: list[str]) -> tuple[str, Residue]:
    residue = Residue()
    return "".join(residue.feed(piece) for piece in pieces) + residue.close(), residue


TOKENS = ["turn", "0", "12", "search", "news", "cite", "file", "start", "word", ".", "ü", "_"]
TOKENS += ["[", "]", "(", "【", "】", "†", "\U0001f3f4", "\U000e0067", "\U000e007f", "\u202e"]
TOKENS += [*cut("\ue200 \ue201 \ue202 turn0search1 citeturn2view3"), "[cite: 1", ", ", " ", "\n"]
PIECES = st.lists(st.one_of(st.sampled_from(TOKENS), st.text(max_size=3)), max_size=12)


@given(PIECES)
@example(["【", "a" * 130, "turn0search0", "†】"])
@example(["\ue200", "x" * 700, "\ue201"])
def test_streaming_equals_the_whole(pieces: list[str]) -> None:
    """Any text cut anywhere comes out as the whole text does."""
    assert streamed(pieces)[0] == strip("".join(pieces))


@given(PIECES)
def test_offsets_follow_the_text(pieces: list[str]) -> None:
    """Offsets never leave the text or run backwards, and a kept letter keeps its offset."""
    raw = "".join(pieces)
    clean, residue = streamed(pieces)
    mapped = [residue.position(at) for at in range(len(raw) + 1)]
    assert mapped[-1] == len(clean)
    assert all(0 <= a <= b <= a + 1 for a, b in pairwise(mapped))
    kept = [raw[at] for at in range(len(raw)) if mapped[at + 1] > mapped[at]]
    assert "".join(kept) == clean


def test_nothing_is_held_for_long() -> None:
    """An opening sign without an end delays a bounded stretch of text only."""
    residue = Residue()
    shown = residue.feed("\ue200") + "".join(residue.feed("x") for _ in range(1000))
    assert len(shown) > 900


def test_a_long_piece_is_not_held_back() -> None:
    """Servers that send whole sentences end some of them with a blank: only that one waits."""
    residue = Residue()
    sentence = "High water at the quay is at seven in the morning. "
    assert residue.feed(sentence) == sentence[:-1]
    assert residue.feed("\ue200cite\ue202turn0search0\ue201 Low") == " Low"


@given(PIECES)
@example(["turn0search1", "\U000e0067", "0"])
def test_invisible_signs_alone_are_stripped_the_same_way(pieces: list[str]) -> None:
    """For servers without marks of their own: any text cut anywhere, and marks stay."""
    seen, whole = Seen(), Seen()
    text = "".join(pieces)
    streamed = "".join(map(seen.feed, pieces)) + seen.close()
    assert streamed == whole.feed(text) + whole.close()
    bare = strip(text)  # without marks, too: nothing is left in it for the other to strip
    assert Seen().feed(bare + ".") == bare + "."
    assert not set("\u202e\U000e0001") & set(streamed)
