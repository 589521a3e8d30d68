"""Renders Markdown to a tree of nodes, so that no browser parses markup that a model wrote.

A node is a string or {"t": tag, "a"?: {attribute: value}, "c"?: [nodes]}, with the tags and
attributes of `tree.TAGS` alone. HTML in the text is text. Only the address of a source becomes a
link; any other link or image is shown as its words with the host behind them, and nothing is ever
loaded. Citation marks become `cite` nodes.

A block depends on nothing but itself: reference definitions, which reach across blocks, are not
read. So a growing text is rendered from its last unfinished block on.
"""

from __future__ import annotations

import functools
import keyword
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchloop.agent.search.answer_markdown import DEEPEST, block_parser, inline_tokens
from searchloop.agent.search.marks import find
from searchloop.render.formulas import mathml
from searchloop.render.tree import (
    KnownLinks,
    Mark,
    Node,
    Tree,
    change,
    find_marks,
    shown_host,
    substitute,
)

if TYPE_CHECKING:
    from markdown_it.token import Token

_GUARD = "\ufdd0"  # a noncharacter: no text can forge a mark of ours
_OURS = re.compile(f"\\[{_GUARD}(\\d+)\\]{_GUARD}?")
_SPECIAL = re.compile(r"[\\`*_~\[!<&\n$]")
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,32}")
_SIDE = re.compile(r"text-align:(left|right|center)")
_TASK = re.compile(r"\[([ xX])\](?= )")
_NAMES = {"s": "del"}


def render(
    text: str,
    citations: Sequence[Mapping[str, Any]] | None = None,
    sources: Sequence[Mapping[str, Any]] = (),
) -> list[Node]:
    """Returns the blocks of a text. `citations` and `sources` are those of its event.

    Without `citations`, which only a finished text has, each mark of a known number counts.
    """
    links = KnownLinks(sources)
    links.add(citations or ())
    return render_known(text, citations, links)


def render_known(
    text: str, citations: Sequence[Mapping[str, Any]] | None, links: KnownLinks
) -> list[Node]:
    """Renders as `render` does, with the sources of a whole session."""
    return _Document(text, citations, links).blocks()


# A longer block is rendered again when a share of it is new: each time costs its whole length.
_LONG, _SHARE = 600, 64


class Incremental:
    """Renders a growing text: only what follows the last finished block is rendered again.

    Of a long block the last 1 or 2 % may be held back until more has come.
    """

    def __init__(self, links: KnownLinks) -> None:
        self._links = links
        self._tail = ""  # what follows the last finished block
        self.held = 0  # characters that are not shown yet
        self._base = 0
        self._shown: list[Node] = []

    @property
    def unfinished(self) -> int:
        """The number of characters that the next `feed` renders again."""
        return len(self._tail)

    def feed(self, text: str) -> list[Any]:
        """Adds text. Returns the `change` from the blocks before to those of the whole text."""
        self._tail += text
        self.held += len(text)
        if len(self._tail) > _LONG and self.held * _SHARE < len(self._tail):
            return [self._base + len(self._shown)]
        self.held = 0
        document = _Document(self._tail, None, self._links)
        blocks = document.blocks()
        same, *tail = change(self._shown, blocks)
        told = [self._base + same, *tail]
        done = 0
        if "\n" in text and len(blocks) > 1:
            done, self._tail = document.finished()
        self._base += done
        self._shown = blocks[done:]
        return told


class _Document:
    """One text that is being rendered."""

    def __init__(
        self, text: str, citations: Sequence[Mapping[str, Any]] | None, links: KnownLinks
    ) -> None:
        self._text = text.replace(_GUARD, "\ufffd").replace("\r", " ")  # spans still fit
        self._links = links
        if citations is None:
            places = find(self._text, links.numbers) if links.numbers else []
            self._marks = [Mark(p.start, p.end, dict.fromkeys(p.numbers, ())) for p in places]
        else:
            self._marks = find_marks(self._text, citations)

    def blocks(self) -> list[Node]:
        """Returns the tree."""
        written: list[str] = []

        def write(mark: Mark) -> str:
            written.append("")
            follows = self._text[mark.end : mark.end + 1]
            return f"[{_GUARD}{len(written) - 1}]" + (_GUARD if follows == "(" else "")

        prepared = substitute(self._text, self._marks, write)
        tree = Tree()
        tokens = block_parser().parse(prepared)
        for before, token in zip(tokens, tokens[2:], strict=False):
            if before.type == "list_item_open" and (box := _TASK.match(token.content)):
                before.attrSet("class", "task")
                token.content = ("☐" if box[1] == " " else "☑") + token.content[3:]
        for token in tokens:
            self._block(token, tree)
        return tree.nodes

    def finished(self) -> tuple[int, str]:
        """Returns how many first blocks no further text can change, and the text behind them.

        Only whole lines count, and their last block may go on.
        """
        whole = self._text[: self._text.rfind("\n") + 1]
        starts = [
            token.map[0]
            for token in block_parser().parse(whole)
            if token.level == 0 and token.nesting >= 0 and token.map and token.type != "inline"
        ]
        if len(starts) < 2:
            return 0, self._text
        lines = self._text.split("\n")
        return len(starts) - 1, "\n".join(lines[starts[-1] :])

    def _block(self, token: Token, tree: Tree) -> None:
        if token.type == "inline":
            tree.extend(self._line(token.content))
        elif token.type in ("fence", "code_block"):
            language = _LANGUAGE.match(self._plain(token.info).strip())
            name, code = language and language[0], self._plain(token.content)
            tree.add("pre", highlight(code, name), lang=name)
        elif token.type == "hr":
            tree.add("hr")
        elif token.nesting > 0:
            if token.hidden:
                tree.open(None)
                return
            if token.type == "footnote_reference_open":
                tree.open("div", class_="footnote")
                tree.add("sup", [token.meta["label"]])
                return
            side = _SIDE.search(str(token.attrGet("style") or ""))
            start = token.attrGet("start") if token.tag == "ol" else None
            first = None if start is None else str(start)
            kind = side[1] if side else str(token.attrGet("class") or "")
            tree.open(token.tag, class_=kind, start=first)
        elif token.nesting < 0:
            tree.close()

    def _line(self, content: str) -> list[Node]:
        if not _SPECIAL.search(content):
            return [content]
        tree = Tree(DEEPEST // 2)
        for token in inline_tokens(content):
            self._inline(token, tree)
        return tree.nodes

    def _inline(self, token: Token, tree: Tree) -> None:
        kind = token.type
        if kind in ("text", "text_special"):
            tree.extend(self._cited(token.content))
        elif kind == "softbreak":
            tree.extend(["\n"])
        elif kind == "hardbreak":
            tree.add("br")
        elif kind == "math":
            shown = mathml(self._plain(token.content), token.block)
            raw = [self._plain(token.markup)]
            tree.extend([shown or {"t": "span", "a": {"class": "math"}, "c": raw}])
        elif kind == "footnote":
            tree.add("sup", [token.content])
        elif kind == "code_inline":
            tree.add("code", [self._plain(token.content)])
        elif kind == "image":
            alt = "".join(child.content for child in token.children or ())
            href = self._plain(str(token.attrGet("src") or ""))
            tree.open("a")
            tree.extend(self._cited(alt))
            self._close_link(href, tree, may_link=False)
        elif kind == "link_open":
            tree.open("a", href=self._plain(str(token.attrGet("href") or "")))
        elif kind == "link_close":
            self._close_link(tree.href(), tree)
        elif token.nesting > 0:
            tree.open(_NAMES.get(token.tag, token.tag))
        elif token.nesting < 0:
            tree.close()

    def _close_link(self, href: str, tree: Tree, *, may_link: bool = True) -> None:
        known = self._links.find(href) if may_link else None
        host = shown_host(known or href)
        bare = tree.said() in (href, host)
        if known:
            if not bare:
                tree.extend([{"t": "span", "a": {"class": "host"}, "c": [f" ({host})"]}])
            tree.close({"t": "a", "a": {"href": known}})
        else:
            if host and not bare:
                tree.extend([f" ({host})"])
            tree.close({"t": "span", "a": {"class": "unlinked"}})

    def _cited(self, text: str) -> list[Node]:
        if _GUARD not in text:
            return [text]
        nodes: list[Node] = []
        last = 0
        for match in _OURS.finditer(text):
            nodes.append(text[last : match.start()])
            nodes += map(_chip, self._marks[int(match[1])].numbers.items())
            last = match.end()
        nodes.append(text[last:].replace(_GUARD, ""))
        return nodes

    def _plain(self, text: str) -> str:
        """Restores the marks in a text where they are none: code and addresses."""
        if _GUARD not in text:
            return text

        def original(match: re.Match[str]) -> str:
            mark = self._marks[int(match[1])]
            return self._text[mark.start : mark.end]

        return _OURS.sub(original, text).replace(_GUARD, "")


def _chip(cited: tuple[int, Sequence[int]]) -> Node:
    """Returns a citation's node; `m` says which of its marks stand here, if it has several."""
    n, marks = cited
    return {"t": "cite", "a": {"n": str(n), **({"m": ",".join(map(str, marks))} if marks else {})}}


# -- code: one expression for a family of languages; right for most lines, and never slow ----------

LONGEST_CODE = 20_000  # characters; longer code stays plain
_STRING = r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
_NUMBER = r"(?<![\w.])(?:0[xob][\da-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\b"
_FAMILIES: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "code.toml").read_text("utf-8")
)
_LANGUAGES = {name: kind for kind, its in _FAMILIES.items() for name in its["names"].split()}
KINDS = ("com", "str", "num", "key")


def highlight(code: str, language: str | None) -> list[Node]:
    """Returns code as text and spans of the classes KINDS. Unknown languages stay plain."""
    family = _LANGUAGES.get((language or "").lower())
    if family is None or len(code) > LONGEST_CODE:
        return [code]
    nodes: list[Node] = []
    last = 0
    for match in _pattern(family).finditer(code):
        if match.start() > last:
            nodes.append(code[last : match.start()])
        nodes.append({"t": "span", "a": {"class": match.lastgroup}, "c": [match[0]]})
        last = match.end()
    if last < len(code):
        nodes.append(code[last:])
    return nodes


@functools.cache
def _pattern(family: str) -> re.Pattern[str]:
    its = _FAMILIES[family]
    words = its.get("words", "").split()
    words = [*keyword.kwlist, *words] if family == "python" else words
    strings = "|".join(filter(None, (its.get("strings"), _STRING)))
    parts = [f"(?P<com>{its['comments']})", f"(?P<str>{strings})", f"(?P<num>{_NUMBER})"]
    if words:
        parts.append(rf"(?P<key>(?<![\w.$-])(?:{'|'.join(words)})(?![\w-]))")
    return re.compile("|".join(parts), re.IGNORECASE if its.get("any_case") else re.NOFLAG)
