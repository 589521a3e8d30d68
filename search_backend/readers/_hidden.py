"""Take out of a parsed page what its visitors cannot see, so that no model reads it either."""

from __future__ import annotations

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

_NO_TEXT = (
    "script,style,template,iframe,object,embed,svg,canvas,audio,video,map,select,datalist,"
    "input,textarea,progress,meter"
)
_HIDDEN = "[hidden],[aria-hidden=true],dialog:not([open])"
_ZERO = r"0+(?:\.0*)?(?:px|em|rem|pt|%|vw|vh)?(?=;|$|!)"
_HIDING = re.compile(
    r"(?:^|;)(?:"
    r"display:none|visibility:(?:hidden|collapse)|content-visibility:hidden"
    rf"|font-size:(?:{_ZERO}|[01](?:\.\d+)?px)"
    rf"|(?:max-)?(?:height|width):{_ZERO}"
    r"|text-indent:-\d{3,}|(?:left|top|right|bottom|margin-left|margin-top):-\d{4,}"
    r"|clip:rect\(0|clip-path:inset\((?:50|100)%|transform:scale\(0(?:,0)?\)"
    r"|color:transparent|filter:opacity\(0"
    r")"
)
_FADED = re.compile(rf"(?:^|;)opacity:(?:{_ZERO}|\.0+(?=;|$|!))")
_COLOUR = re.compile(r"(?:^|;)color:([^;!]+)")
_BACKGROUND = re.compile(r"(?:^|;)background(?:-color)?:([^;!]+)")
_COMMENT = re.compile(r"/\*.*?(?:\*/|$)", re.DOTALL)
_is_simple = re.compile(r"[a-z0-9]*[.#][\w-]+", re.IGNORECASE).fullmatch
# A sheet that hides most of a page does so until a script shows it: that is the page's text.
MOST_HIDDEN_SHARE = 0.3
BETTER_PART = 0.5
# Shorter than any page that was worth hiding.
LONGEST_HIDDEN = 500
_ROOTS = frozenset({"html", "body", "main"})
# React streams a page in pieces, hidden until a script puts them in place.
# https://react.dev/reference/react-dom/server/renderToPipeableStream
_STREAMED = "body > div[hidden][id^='S:']"


def remove_hidden(tree: LexborHTMLParser) -> None:
    """Drop elements that hold no text or none that is shown. Changes `tree`."""
    hiding = list(_hiding_selectors(tree))
    _show_streamed(tree)
    _drop(tree.css(_NO_TEXT))
    _unfold_noscript(tree)
    body = tree.body
    total = len(_text(body))
    _drop(_never_shown(tree, total))
    if hiding:
        nodes = [node for node in tree.css(",".join(hiding)) if node.tag not in _ROOTS]
        if sum(len(_text(node)) for node in nodes) <= total * MOST_HIDDEN_SHARE:
            _drop(nodes)


def _never_shown(tree: LexborHTMLParser, total: int) -> list[LexborNode]:
    """What attributes and inline styles hide, but not what waits for a script to show it.

    A page that fades in, or that arrives in pieces which a script puts in place, hides the better
    part of itself at first: one element with most of the text, or many that are merely transparent.
    """
    hidden = tree.css(_HIDDEN)
    faded = []
    for node in tree.css("[style]"):
        style = _plain(node.attributes.get("style") or "")
        if _hides(style):
            hidden.append(node)
        elif _FADED.search(style):
            faded.append(node)
    most = max(total * BETTER_PART, LONGEST_HIDDEN)
    sizes = [size for node in faded if (size := len(_text(node))) <= most]
    if sum(sizes) <= total * MOST_HIDDEN_SHARE:
        hidden += faded
    opened = {
        name
        for node in tree.css("[aria-controls]")
        for name in (node.attributes.get("aria-controls") or "").split()
    }
    return [
        node
        for node in hidden
        if node.tag not in _ROOTS
        and not (node.attributes.get("role") == "tabpanel" or node.attributes.get("id") in opened)
        and len(_text(node)) <= most
    ]


def hides(style: str) -> bool:
    """Whether an inline style makes its element invisible."""
    plain = _plain(style)
    return _FADED.search(plain) is not None or _hides(plain)


def _plain(style: str) -> str:
    return re.sub(r"\s+", "", _COMMENT.sub("", style)).lower()


def _hides(plain: str) -> bool:
    if _HIDING.search(plain):
        return True
    colour, background = _COLOUR.search(plain), _BACKGROUND.search(plain)
    return bool(colour and background and colour[1] == background[1])


def _hiding_selectors(tree: LexborHTMLParser) -> Iterator[str]:
    """Simple selectors (.class, #id) that the page's own sheets make invisible on every screen."""
    for sheet in tree.css("style"):
        text = _COMMENT.sub("", sheet.text() or "")[:200_000]
        for selectors, declarations in _rules(text):
            # Most rules have no selector of this kind: cheaper to see than what they declare.
            simple = [one for one in map(str.strip, selectors.split(",")) if _is_simple(one)]
            if simple and hides(declarations):
                yield from simple


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
        waiting = {node.attributes.get("id") for node in tree.css("template[id^='B:']")}
        for piece in pieces:
            if "B" + (piece.attributes.get("id") or "")[1:] in waiting:
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
