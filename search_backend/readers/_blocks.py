"""A page as a list of blocks: runs of text between which a browser breaks the line."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from selectolax.lexbor import LexborHTMLParser, LexborNode

_BLOCK_NAMES = (
    "address article aside blockquote body br button caption center dd details div dl dt fieldset "
    "figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr html label legend li main nav ol p "
    "pre section summary table tbody td tfoot th thead tr ul"
)
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_WORD_ENDS = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])")
LONGEST_CLASS = 200
MOST_NAMES = 24


@dataclass(slots=True)
class Box:
    """An element that begins a line. `parent` is an index of `Layout.boxes`, -1 for the body."""

    parent: int
    tag: str
    names: tuple[str, ...]
    """Its tag and the words of class, id, role and itemprop, as the model knows them."""


@dataclass(slots=True)
class Block:
    """A run of text. `box` is the innermost element around it; `pieces` are (text, link)."""

    box: int
    pieces: list[tuple[str, LexborNode | None]]
    text: str
    words: int
    linked: float
    """The share of its characters that are inside links."""


@dataclass(slots=True)
class Layout:
    """The boxes of a page in the order of the document, and the blocks of text inside them."""

    boxes: list[Box] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)


def layout(tree: LexborHTMLParser) -> Layout:
    """The boxes and blocks of the body, with a stack of our own: markup may be deep."""
    page = Layout()
    if tree.body is None:
        return page
    boxes, blocks = page.boxes, page.blocks
    pieces: list[tuple[str, LexborNode | None]] = []
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    # (element, the box it is in, the link it is in); an element of None ends the box.
    stack: list[tuple[LexborNode | None, int, LexborNode | None]] = [(tree.body, -1, None)]
    box = -1
    while stack:
        node, inside, link = stack.pop()
        if node is None:
            pieces = _end_block(blocks, pieces, box)
            box = inside
            continue
        tag = node.tag or ""
        if tag == "-text":
            if text := node.text_content or "":
                pieces.append((text, link))
            continue
        if tag in _BLOCKS:
            pieces = _end_block(blocks, pieces, box)
            boxes.append(Box(inside, tag, _names(tag, node.attributes, known)))
            stack.append((None, inside, None))
            box = inside = len(boxes) - 1
        elif tag == "a":
            link = node
        elif not tag[:1].isalpha():
            continue  # comments and the like
        child = node.last_child
        while child is not None:
            stack.append((child, inside, link))
            child = child.prev
    return page


def _end_block(
    blocks: list[Block], pieces: list[tuple[str, LexborNode | None]], box: int
) -> list[tuple[str, LexborNode | None]]:
    if not pieces:
        return pieces
    if len(pieces) == 1:
        piece, link = pieces[0]
        if parts := piece.split():
            full = 0.0 if link is None else 1.0
            blocks.append(Block(box, pieces, " ".join(parts), len(parts), full))
        return []
    parts = "".join(piece[0] for piece in pieces).split()
    if parts:
        text = " ".join(parts)
        linked = sum(len(" ".join(piece.split())) for piece, link in pieces if link is not None)
        blocks.append(Block(box, pieces, text, len(parts), linked / len(text)))
    return []


def _names(
    tag: str,
    attributes: dict[str, str | None],
    known: dict[tuple[str, ...], tuple[str, ...]],
) -> tuple[str, ...]:
    if not attributes:
        return (tag,)
    get = attributes.get
    key = (
        tag,
        *((get("class") or "")[:LONGEST_CLASS], (get("id") or "")[:60]),
        *(get("role") or "", get("itemprop") or ""),
    )
    names = known.get(key)
    if names is None:
        words = [word for text in key[1:3] for name in text.split() for word in _words(name)]
        more = [
            f"{mark}={text[:40].lower()}" for mark, text in zip("ri", key[3:], strict=True) if text
        ]
        names = known[key] = (tag, *dict.fromkeys(words[:MOST_NAMES]), *more)
    return names


@lru_cache(maxsize=4096)
def _words(name: str) -> tuple[str, ...]:
    """The words of a class or id, as the model knows them; the same few come again and again."""
    words = _WORD_ENDS.split(name)
    return tuple("." + word.lower() for word in words if len(word) > 1 and not word.isdigit())
