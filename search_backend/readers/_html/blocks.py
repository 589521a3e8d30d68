"""Cut a page into blocks: runs of text between which a browser breaks the line.

The parsed page is written out once and cut at its tags: the parser writes one form only (see
`text`), and a step through a list of strings costs a fraction of a step through nodes. Tags inside
a line are removed, and links marked, for all blocks at once. `roles` tells the part of a page that
a block lies in, by the words that page makers use for such parts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from selectolax.lexbor import LexborHTMLParser

from searchloop.search_backend.readers._html.parts import NAMES
from searchloop.search_backend.readers._html.parts.code import code_in_blocks, shows_code
from searchloop.search_backend.readers._html.parts.inline import inline, stacked
from searchloop.search_backend.readers._html.text import CUT, TAG, in_order, normal, plain, runs

_EMPTY = frozenset(("br", "hr"))
_BLOCK_TAG = re.compile(rf"<(/?(?:{'|'.join(sorted(NAMES['blocks']))})(?>(?: [^<>]*+)?))>")
_VALUES = re.compile(r' (class|id|role|itemprop)="([^"]*)"')
_TYPED = re.compile(r' style="[^"]*white-space: ?(?:pre|break-spaces)')
_WORD_ENDS = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])")
# Tables made of other elements, by their roles. https://www.w3.org/TR/wai-aria-1.2/#role_definitions
_CELLS = {"table": "table", "grid": "table", "treegrid": "table", "rowgroup": "tbody", "row": "tr"}
_CELLS |= {"cell": "td", "gridcell": "td", "columnheader": "th", "rowheader": "th"}
_NEUTRAL = frozenset(("div", "section", "ul", "ol", "li", "p"))
LONGEST_CLASS = 200
MOST_NAMES = 24


@dataclass(slots=True)
class Box:
    """An element that begins a line. `parent` is an index of `Layout.boxes`, -1 for the body."""

    parent: int
    tag: str
    names: tuple[str, ...]
    """Its tag and the words of class, id, role and itemprop, as the model knows them."""
    mark: str
    """Its tag as written, with all attributes."""


@dataclass(slots=True)
class Block:
    """A run of text. `box` is the innermost element around it."""

    box: int
    html: str
    """What lies between the breaks of the line, with its links and other tags."""
    link: str | None
    """The address of a link that is open where it begins."""
    text: str
    words: int
    linked: float
    """The share of its characters that are inside links."""
    after: int
    """How many boxes began before it."""


@dataclass(slots=True)
class Layout:
    """The boxes of a page in the order of the document, and the blocks of text inside them."""

    boxes: list[Box]
    blocks: list[Block]
    names: set[str]
    """All that its boxes are called."""
    parents: list[int]
    """Those of its boxes."""


def written(tree: LexborHTMLParser) -> str:
    """The body as the parser writes it, without comments."""
    if tree.body is None:
        return ""
    for typed in tree.css("xmp,plaintext"):  # the parser writes them as they were, with "<"
        shown = tree.create_node("pre")
        shown.insert_child(typed.text())
        typed.replace_with(shown)
    # An empty tag in its place: text before and after a comment is not one text.
    html, *others = (tree.body.html or "").split("<!--")
    html = "<!>".join([html, *(other.partition("-->")[2] for other in others)])
    if html.count("<") == html.count(">"):
        return html
    # A name may have this sign in it; a tag must not look like two.
    pieces = (piece.partition("<") for piece in html.split(">"))
    return ">".join(text + sign + tag.replace("<", "-") for text, sign, tag in pieces)


def layout(markup: str) -> Layout:
    """The boxes and blocks of a body in the form of `written`."""
    markup = stacked(markup.replace(CUT, ""))
    # Text, tag, text, tag and so on.
    parts = _BLOCK_TAG.split(code_in_blocks(markup))
    parents: list[int] = []
    kinds: list[tuple[str, tuple[str, ...], str]] = []
    known: dict[str, tuple[str, tuple[str, ...], str]] = {}
    pieces: list[str] = []
    homes: list[tuple[int, int]] = []
    codes: dict[int, str] = {}
    box = -1
    marks = zip(parts[::2], parts[1::2], strict=False)
    for piece, mark in marks:
        if piece and not piece.isspace():
            pieces.append(piece)
            homes.append((box, len(parents)))
        if mark[0] == "/":
            box = parents[box]
            continue
        kind = known.get(mark)
        if kind is None:
            kind = known[mark] = _kind(mark)
        parents.append(box)
        kinds.append(kind)
        if kind[0] == "pre":
            code = _inside(mark.partition(" ")[0], marks)
            if code and not code.isspace():
                codes[len(pieces)] = code
                pieces.append("")
                homes.append((len(parents) - 1, len(parents)))
        elif kind[0] not in _EMPTY:
            box = len(parents) - 1
    boxes = [Box(up, *kind) for up, kind in zip(parents, kinds, strict=True)]
    pieces = inline(pieces)
    for at, code in codes.items():
        pieces[at] = code
    blocks = [*_blocks(pieces, homes)] if pieces else []
    return Layout(boxes, blocks, {n for kind in known.values() for n in kind[1]}, parents)


def _inside(tag: str, marks: Iterator[tuple[str, str]]) -> str:
    """All that an element of this tag has inside, up to its end."""
    held: list[str] = []
    depth = 1
    for piece, mark in marks:
        held.append(piece)
        depth += (mark.partition(" ")[0] == tag) - (mark == f"/{tag}")
        if not depth:
            break
        held.append(f"<{mark}>")
    return "".join(held)


def _blocks(pieces: list[str], homes: list[tuple[int, int]]) -> Iterator[Block]:
    """The blocks of these pieces of markup that have text."""
    links: list[str] = []  # those that are open, each inside the one before
    texts = in_order(plain(TAG.sub("", CUT.join(pieces)))).split(CUT)
    for piece, raw, (home, after) in zip(pieces, texts, homes, strict=True):
        text = raw.strip(" ")
        link = links[-1] if links else None
        linked = 0.0
        if link is not None or "<a" in piece:
            found = [run for run, target in runs(piece, links) if target is not None]
            inside = [normal(plain(part)) for run in found for part in TAG.split(run)]
            linked = sum(map(len, inside)) / len(text) if text else 0.0
        if text:
            yield Block(home, piece, link, text, text.count(" ") + 1, linked, after)


def _kind(mark: str) -> tuple[str, tuple[str, ...], str]:
    """The tag, the names and the whole of p class="x"; what shows code counts as a pre.

    Its names are its tag and what its attributes are called, those of `_VALUES` in any order.
    """
    tag, blank, _ = mark.partition(" ")
    if not blank or not (found := _VALUES.findall(mark)):
        names: tuple[str, ...] = (tag,)
    else:
        get = dict(found if "&" not in mark else ((one, plain(said)) for one, said in found)).get
        classes, role, item = get("class", "")[:LONGEST_CLASS], get("role"), get("itemprop")
        called = f"{classes} {get('id', '')[:60]}".split()
        words = [word for name in called for word in _words(name)]
        told = _CELLS.get(role) if role and tag in _NEUTRAL else None
        shown = "pre" if classes and shows_code(tag, classes) else told or tag
        names = (shown, *dict.fromkeys(words[:MOST_NAMES]))
        if role:
            names += (f"r={role[:40].lower()}",)
        if item:
            names += (f"i={item[:40].lower()}",)
    return "pre" if "monospace" in mark and _TYPED.search(mark) else names[0], names, mark


@lru_cache(maxsize=4096)
def _words(name: str) -> tuple[str, ...]:
    """The words of a class or id, as the model knows them; the same few come again and again."""
    words = _WORD_ENDS.split(name)
    return tuple("." + word.lower() for word in words if len(word) > 1 and not word.isdigit())


# The number of the first role. The forests see these few roles one by one, as they mean the same on
# nearly all sites: comments are furniture below an article, not in a forum.
COMMENTS = 0
_ROLES = json.loads((files(__package__) / "parts/roles.json").read_text("ascii"))
_COUNT = len(_ROLES)
# Two words that say together what those of a body, the last role, say alone.
_PAIR = (".article .story .post .news .blog", ".body .content .text .copy .main")
_BIT: dict[str, int] = {}
for _at, _line in enumerate((*_ROLES.values(), *_PAIR)):
    _BIT |= {word: _BIT.get(word, 0) | 1 << _at for word in _line.split()}
_BITS = [[float(mask >> at & 1) for at in range(_COUNT)] for mask in range(1 << _COUNT)]


def roles(page: Layout, wrapped: Sequence[bool]) -> list[Sequence[float]]:
    """One column a role: whether a block lies inside such a part; then one a role: the share of the
    page's words that do. `wrapped` tells the boxes that hold nearly all of the page."""
    masks = _masks(page, wrapped)
    words = dict[int, int]()
    for block in page.blocks:
        mask = masks[block.box]
        words[mask] = words.get(mask, 0) + block.words
    total, count = sum(words.values()), len(page.blocks)
    found = zip(*[_BITS[masks[block.box]] for block in page.blocks], strict=True)
    shares = [
        sum(part for mask, part in words.items() if mask >> at & 1) / total for at in range(_COUNT)
    ]
    return [*found, *([share] * count for share in shares)]


def _masks(page: Layout, wrapped: Sequence[bool]) -> list[int]:
    """For each box a bit for each role that it or a box around it has."""
    masks: list[int] = []
    for box, up, is_wrapper in zip(page.boxes, page.parents, wrapped, strict=True):
        own = 0
        for name in () if is_wrapper else box.names:
            if name in _BIT:
                own |= _BIT[name]
        if own >= 3 << _COUNT:
            own |= 1 << _COUNT - 1
        own &= (1 << _COUNT) - 1
        masks.append(own | masks[up] if up >= 0 else own)
    return masks
