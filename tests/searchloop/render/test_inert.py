"""Exported Markdown loads nothing in another viewer, and its code stays as it was."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from searchloop.agent.log.events import Event
from searchloop.agent.log.session import Session
from searchloop.render.export import answer, close_fence, html, markdown, neutralize
from tests.growth import check_growth
from tests.tables import each_row

PIECES = (
    "![a](http://e.example/x.png)",
    "![a][r]",
    "\n\n[r]: http://e.example/y.png\n\n",
    "<img src=http://e.example/z.png>",
    *("<a title='`'>", "<!--", "-->", "<https://ok.example/>", "\n<div>\n", "\n```\n", "\n~~~\n"),
    *("\n\n    ", "\n> ", "\n- ", "\n|a|b|\n|-|-|\n|", "\n", "\r", "\r\n"),
    *("`", "``", "!", "[", "](", ")", "\\", "|", "$", "$$", "\\[", "\\]", "<", ">", " ", "x", "\0"),
)
texts = st.lists(st.sampled_from(PIECES), max_size=24).map("".join)


def viewer(tables: bool) -> MarkdownIt:
    """Another program's reading, with markup let through."""
    made = MarkdownIt("commonmark", {"html": True})
    return made.enable("table") if tables else made


def leaves(text: str, tables: bool) -> list[Token]:
    """All tokens of a text, those in lines too."""
    found = viewer(tables).parse(text)
    return [*found, *(child for token in found for child in token.children or ())]


@given(texts, st.booleans())
def test_no_viewer_finds_an_image_or_markup(text: str, tables: bool) -> None:
    """Whatever is mixed with whatever, and twice is as good as once."""
    quiet = neutralize(text)
    live = {"image", "html_inline", "html_block"}
    assert not live & {token.type for token in leaves(quiet, tables)}, quiet
    assert neutralize(quiet) == quiet


WORDS = (
    "![a](http://e.example/x) and `![b](http://e.example/y)`",
    "<details><summary>Look</summary>",
    "- one `<b>`\n- <i>two</i>",
    "> quoted <b> `x`",
    "| a | `<b>` |\n|---|---|\n| <i> | $a<b$ |",
    "A price of $5, `code` and \\(x<y\\)",
)
code = st.lists(st.sampled_from([p for p in PIECES if "\r" not in p and "\0" not in p]), max_size=9)
fences = code.map("".join).map(lambda text: text.replace("```", "~").replace("`\n", "\n"))


@given(st.lists(st.tuples(st.sampled_from(WORDS), fences), max_size=4))
def test_code_blocks_stay_byte_by_byte(parts: list[tuple[str, str]]) -> None:
    """Between whatever words, also right behind markup that would swallow the fence elsewhere."""
    text = "\n\n".join(f"{words}\n````html\n{code}\n````" for words, code in parts)
    quiet = neutralize(text)
    for _, code in parts:
        assert f"\n````html\n{code}\n````" in quiet
    assert "`![b](http://e.example/y)`" in quiet or WORDS[0] not in text


@each_row(
    ("text", "quiet"),
    [
        ("![a](http://e.example/x)", "!\\[a](http://e.example/x)"),
        ("`<b>![a](x)` and <b>", "`<b>![a](x)` and &lt;b>"),
        ("1 < 2, a <- b, <https://ok.example/>", "1 < 2, a <- b, <https://ok.example/>"),
        ("\\![a](u) \\\\![a](u) \\<b> \\\\<b>", "\\![a](u) \\\\!\\[a](u) \\<b> \\\\&lt;b>"),
        ("Wow![^1] ![^1](http://e.example/)", "Wow! [^1] ! [^1](http://e.example/)"),
        ("![a](x`y) `![i](u)`", "!\\[a](x`y) `!\\[i](u)`"),
        ("| \\`![x](u)` | `![x](u)` |\n|---|---|", "| \\`!\\[x](u)` | `!\\[x](u)` |\n|---|---|"),
        ("- `<i>`\n  ```\n  <i>\n  ```", "- `<i>`\n  ```\n  <i>\n  ```"),
    ],
)
def test_what_is_written_instead(text: str, quiet: str) -> None:
    """As little as will do; backslashes that escape already are counted."""
    assert neutralize(text) == quiet


@each_row("piece", ["![", "`", "<b", "> ", "|", "- ", "`a` <b>\n", "|`a`|b|\n|-|-|\n"])
def test_long_texts_are_done_in_time(piece: str) -> None:
    """No input makes it slow: a long paragraph is not searched for code."""
    text = f"![x](y)\n\n{piece * (16_000 // len(piece))}"
    check_growth(neutralize, text)
    assert not {token.type for token in leaves(neutralize(text)[:2000], True)} & {"image"}


def test_an_open_fence_ends_with_its_answer() -> None:
    """Else the next answer's code would be text, and its text code."""
    assert close_fence("a\n````py\nb") == "a\n````py\nb\n````"
    for whole in ("a", "```\nb\n```", "- ```\n  b", "~~~\n~~~\nc", ""):
        assert close_fence(whole) == whole


def exported(said: str) -> tuple[str, str, str]:
    """Markdown, one answer and HTML of a chat whose two answers are `said`."""
    done: dict[str, Any] = {"reason": "stop", "search_path": "off", "sources": []}
    events = []
    for n in (1, 3):
        events.append(
            Event(n, "user_message", {"text": "<img src=q> ![q](http://q.example/)"}, 0.0)
        )
        cited = [{"n": 1, "url": "https://a.example/", "title": "![t](u)", "marks": []}]
        ended = {**done, "answer": said, "citations": cited}
        events.append(Event(n + 1, "run_finished", ended, 0.0))
    session = Session(
        "s", "![t](http://t.example/)", "m", "ask", "off", "off", None, 0, 0, 2, False
    )
    return markdown(session, events), answer(events, 1), html(session, events)


def test_every_export_is_inert() -> None:
    """Title, question, answer and footnotes; code in both answers though a fence was left open."""
    said = "![p](http://e.example/?q=secret) <img src='http://e.example/'>\n\n```\n<b>![c](u)"
    whole, one, page = exported(said)
    for text in (whole, one):
        assert not {t.type for t in leaves(text, True)} & {"image", "html_inline", "html_block"}
        assert "!\\[p](http://e.example/?q=secret) &lt;img" in text
    assert whole.count("```\n<b>![c](u)\n```\n") == 2
    assert "<img" not in page
    assert page.count('<pre tabindex="0" dir="ltr"><code>&lt;b&gt;![c](u)') == 2
