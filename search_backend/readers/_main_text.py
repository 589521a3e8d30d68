"""Main text of a page by structure alone: fast, never empty-handed, not choosy."""

from __future__ import annotations

from selectolax.lexbor import LexborHTMLParser, LexborNode

_FURNITURE = (
    "nav,header,footer,aside,form,button,menu,[role=navigation],[role=banner],[role=contentinfo]"
)
_BLOCK_NAMES = (
    "address article aside blockquote body center dd details div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hr html li main nav ol p pre section summary table tbody "
    "tfoot thead tr ul br"
)
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}


def main_text(tree: LexborHTMLParser) -> str:
    """The text of <main>, <article> or <body> as simple Markdown. Takes furniture off `tree`."""
    body = tree.body
    if body is None:
        return ""
    whole = len(body.text(deep=True) or "")
    for node in tree.css(_FURNITURE):
        # A page that wraps all of itself in a form or a header still has its text in there.
        if len(node.text(deep=True) or "") < whole / 2:
            node.remove()
    chosen = [node for query in ("main,[role=main]", "article") for node in tree.css(query)]
    best = max(chosen, key=lambda node: len(node.text(deep=True) or ""), default=body)
    if len(best.text(deep=True) or "") < len(body.text(deep=True) or "") / 3:
        best = body
    return _rendered(best)


def _rendered(root: LexborNode) -> str:
    """Lines of text: one for each block, marked as heading, list item or table row."""
    lines: list[str] = []
    line: list[str] = []
    prefix = ""

    def end_line() -> None:
        text = " ".join("".join(line).split())
        if text:
            lines.append(prefix + text)
        line.clear()

    # A stack of our own: markup may be deeper than Python's.
    stack: list[tuple[LexborNode, bool]] = [(root, False)]
    while stack:
        node, leaving = stack.pop()
        tag = node.tag or ""
        if tag == "-text":
            line.append(node.text(deep=False) or "")
            continue
        if leaving:
            end_line()
            prefix = ""
            continue
        if tag in ("td", "th"):
            line.append(" | " if "".join(line).strip() else "")
        elif tag in _BLOCKS:
            end_line()
            if tag in _HEADINGS or tag == "li":
                prefix = _HEADINGS.get(tag, "- ")
            stack.append((node, True))
        stack.extend((child, False) for child in reversed(list(node.iter(include_text=True))))
    end_line()
    return "\n\n".join(lines).replace("\n\n- ", "\n- ")
