"""Take out of a parsed page what its visitors cannot see, so that no model reads it either."""

from __future__ import annotations

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

_NO_TEXT = (
    "script,style,template,iframe,object,embed,svg,canvas,audio,video,map,select,datalist,"
    "input,textarea,progress,meter,noembed,noframes,annotation,annotation-xml,body title"
)
_HIDDEN = "[hidden],[aria-hidden=true],dialog:not([open])"
_ZERO = r"0+(?:\.0*)?(?:[a-z]{1,4}|%)?(?=;|$|!)"
_HIDING = re.compile(
    r"(?:^|;)(?:"
    r"display:none|visibility:(?:hidden|collapse)|content-visibility:hidden"
    rf"|font-size:(?:{_ZERO}|[01](?:\.\d+)?px)"
    rf"|(?:max-)?(?:height|width):{_ZERO}"
    r"|text-indent:-\d{3,}|(?:left|top|right|bottom|margin-left|margin-top):-(?:\d{4,}|\d{3}r?em)"
    r"|clip:rect\((?:0|1px,?1px)|clip-path:(?:inset\((?:50|100)%|(?:circle|ellipse)\(0(?!\.))"
    r"|transform:(?:scale[xy]?\(0(?:,0)?\)|translate[xy]?\(-\d{4,})|filter:opacity\(0(?!\.[1-9])"
    r"|color:(?:transparent|(?:rgba|hsla)\((?:[^,);]+,){3}0(?:\.0+)?\)|rgb\([^);]+/0(?:\.0+)?%?\))"
    r"|color:#(?:[\da-f]{3}0|[\da-f]{6}00)(?![\da-f])"
    r")"
)
_FADED = re.compile(rf"(?:^|;)opacity:(?:{_ZERO}|\.0+(?=;|$|!))")
# Moved or scaled as well: it comes flying in when a visitor gets there.
_MOVED = re.compile(r"(?:^|;)(?:-webkit-)?transform:(?!none|[^;]*\d{4})")
_COLOUR = re.compile(r"(?:^|;)color:([^;!]+)")
_BACKGROUND = re.compile(r"(?:^|;)background(?:-color)?:([^;!]+)")
_COMMENT = re.compile(r"/\*.*?(?:\*/|$)", re.DOTALL)
# A letter of ASCII by its number, as no style sheet has it that means to be read.
_ESCAPE = re.compile(r"\\(?:0{0,4}([2-7][0-9a-fA-F])(?![0-9a-fA-F])\s?|([g-zG-Z]))")
_is_simple = re.compile(r"[a-z0-9]*[.#][\w-]+", re.IGNORECASE).fullmatch
# A sheet that hides most of a page does so until a script shows it: that is the page's text.
MOST_HIDDEN_SHARE = 0.3
BETTER_PART = 0.5
# Shorter than any page that was worth hiding.
LONGEST_HIDDEN = 500
_ROOTS = frozenset({"html", "body", "main"})
# What says that it unfolds, and what folds it.
_FOLDED = re.compile(r"accordion|collaps|faq|expander|tab-?(?:pane|panel|content)", re.IGNORECASE)
_FOLDING = re.compile(
    rf"(?:^|;)(?:display:none|visibility:hidden|(?:max-)?height:{_ZERO})(?:!important)?(?=;|$)"
)
_FURNITURE = frozenset({"nav", "header", "footer"})
# What opens something is not long.
LONGEST_LABEL = 300
# Shorter text in it is a label, and with more links it is a menu.
LEAST_FOLDED = 40
MOST_LINKED = 1 / 8
# React streams a page in pieces, hidden until a script puts them in place.
# https://react.dev/reference/react-dom/server/renderToPipeableStream
_STREAMED = "body > div[hidden][id^='S:']"
_WAITING = "template[id^='B:'],template[id^='P:']"


def remove_hidden(tree: LexborHTMLParser) -> None:
    """Drop elements that hold no text or none that is shown. Changes `tree`."""
    hiding, folding = _hiding_selectors(tree)
    _show_streamed(tree)
    _drop(tree.css(_NO_TEXT))
    _unfold_noscript(tree)
    hidden, faded = _unseen(tree)
    if hidden or faded or hiding or folding:
        total = len(_text(tree.body))
        if hidden or faded:
            _drop(_never_shown(hidden, faded, _opened(tree), total))
        nodes = _all(tree, hiding)
        if folded := _all(tree, folding):
            opened = _opened(tree)
            nodes += [node for node in folded if not _unfolds(node, opened)]
        nodes = [node for node in nodes if node.tag not in _ROOTS]
        if sum(len(_text(node)) for node in nodes) <= total * MOST_HIDDEN_SHARE:
            _drop(nodes)


def _all(tree: LexborHTMLParser, selectors: list[str]) -> list[LexborNode]:
    return tree.css(",".join(selectors)) if selectors else []


def _unseen(tree: LexborHTMLParser) -> tuple[list[LexborNode], list[LexborNode]]:
    """(hidden, transparent) by attributes and inline styles."""
    hidden, faded = tree.css(_HIDDEN), list[LexborNode]()
    # Pages write the same few styles again and again.
    known: dict[str | None, list[LexborNode] | None] = {}
    for node in tree.css("[style]"):
        style = node.attributes.get("style")
        if style not in known:
            plain = _plain(style or "")
            is_faded = _FADED.search(plain) and not _MOVED.search(plain)
            known[style] = hidden if _hides(plain) else faded if is_faded else None
        if (found := known[style]) is not None:
            found.append(node)
    return hidden, faded


def _never_shown(
    hidden: list[LexborNode], faded: list[LexborNode], opened: set[str | None], total: int
) -> list[LexborNode]:
    """What is unseen, but not what waits for a script to show it.

    A page that fades in, or that arrives in pieces which a script puts in place, hides the better
    part of itself at first: one element with most of the text, or many that are merely transparent.
    """
    most = max(total * BETTER_PART, LONGEST_HIDDEN)
    sizes = [size for node in faded if (size := len(_text(node))) <= most]
    if sum(sizes) <= total * MOST_HIDDEN_SHARE:
        hidden = hidden + faded
    return [
        node
        for node in hidden
        if node.tag not in _ROOTS and len(_text(node)) <= most and not _unfolds(node, opened)
    ]


def _opened(tree: LexborHTMLParser) -> set[str | None]:
    """The ids of what controls of the page open."""
    return {
        name
        for node in tree.css("[aria-controls]")
        for name in (node.attributes.get("aria-controls") or "").split()
    }


def _unfolds(node: LexborNode, opened: set[str | None]) -> bool:
    """Whether a visitor can open it: a control names it, its wrapper or what it wraps, or stands
    right before it; or it is called something that unfolds, and stands below a label."""
    attributes = node.attributes
    if attributes.get("role") == "tabpanel" or attributes.get("id") in opened:
        return True
    if node.tag == "dialog" or len(text := _text(node)) < LEAST_FOLDED:
        return False
    if _hides(_FOLDING.sub("", _plain(attributes.get("style") or ""))):
        return False
    parent, inside = node.parent, next(node.iter(), None)
    around = parent.attributes if parent is not None else {}
    named = (around.get("id"), inside.attributes.get("id") if inside is not None else None)
    names = f"{attributes.get('class')} {around.get('class')}"
    if opened.isdisjoint(name for name in named if name) and not _has_label(node, names):
        return False
    return len(node.css("a")) <= MOST_LINKED * len(text.split())


def _has_label(node: LexborNode, names: str) -> bool:
    """Whether a short text stands right before it that controls something, as the `names` of the
    node may say."""
    before = _element_before(node)
    if before is None or before.tag in _FURNITURE:
        return False
    if not 0 < len(_text(before).strip()) <= LONGEST_LABEL:
        return False
    says_so = "aria-expanded" in before.attributes or _FOLDED.search(names) is not None
    return says_so or before.css_first("[aria-expanded]") is not None


def _element_before(node: LexborNode) -> LexborNode | None:
    """The element before it, inside the same one."""
    before = node.prev
    while before is not None and not before.is_element_node:
        before = before.prev
    return before


def hides(style: str) -> bool:
    """Whether an inline style makes its element invisible."""
    plain = _plain(style)
    return _FADED.search(plain) is not None or _hides(plain)


def _plain(style: str) -> str:
    if "\\" in style:
        style = _ESCAPE.sub(lambda found: found[2] or chr(int(found[1], 16)), style)
    return re.sub(r"\s+", "", _COMMENT.sub("", style)).lower()


def _hides(plain: str) -> bool:
    if _HIDING.search(plain):
        return True
    colour, background = _COLOUR.search(plain), _BACKGROUND.search(plain)
    return bool(colour and background and colour[1] == background[1])


def _hiding_selectors(tree: LexborHTMLParser) -> tuple[list[str], list[str]]:
    """Simple selectors (.class, #id) that the page's own sheets make invisible on every screen:
    those for good, and those that might be unfolded."""
    hiding, folding = list[str](), list[str]()
    for sheet in tree.css("style"):
        text = _COMMENT.sub("", sheet.text() or "")[:200_000]
        for selectors, declarations in _rules(text):
            # Most rules have no selector of this kind: cheaper to see than what they declare.
            simple = [one for one in map(str.strip, selectors.split(",")) if _is_simple(one)]
            if simple and hides(declarations):
                rest = _FOLDING.sub("", _plain(declarations))
                (hiding if hides(rest) else folding).extend(simple)
    return hiding, folding


def _rules(sheet: str) -> Iterator[tuple[str, str]]:
    """(selectors, declarations) of the rules outside @media and other conditions."""
    depth, start, selectors = 0, 0, ""
    for match in re.finditer(r"[{};]", sheet):
        mark, at = match[0], match.start()
        if mark == "{":
            if depth == 0:
                selectors, start = sheet[start:at].strip(), at + 1
            depth += 1
        elif mark == "}":
            depth = max(0, depth - 1)
            if depth == 0:
                if not selectors.startswith("@"):
                    yield selectors, sheet[start:at]
                start = at + 1
        elif depth == 0:
            start = at + 1


def _show_streamed(tree: LexborHTMLParser) -> None:
    """What was streamed and has a template that waits for it is part of the page."""
    if pieces := tree.css(_STREAMED):
        waiting = {node.attributes.get("id") for node in tree.css(_WAITING)}
        for piece in pieces:
            number = (piece.attributes.get("id") or "")[1:]
            if "B" + number in waiting or "P" + number in waiting:
                del piece.attrs["hidden"]


def _unfold_noscript(tree: LexborHTMLParser) -> None:
    """Keep a <noscript> that holds the text of the page, as some forums do; drop the others."""
    nodes = tree.css("noscript")
    if not nodes:
        return
    inside = sum(len(_text(node)) for node in nodes)
    if inside > max(500, (len(_text(tree.body)) - inside)):
        tree.unwrap_tags(["noscript"])
    else:
        _drop(nodes)


def _text(node: LexborNode | None) -> str:
    return (node.text(deep=True) or "") if node is not None else ""


def _drop(nodes: list[LexborNode]) -> None:
    # Taken off the tree but not freed: a node may lie inside another one of the list.
    for node in nodes:
        if node.tag not in ("html", "body", "head"):
            node.remove()
