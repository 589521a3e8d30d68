"""Marks within a line as text: code, struck text, readings, quotations, images, links to itself."""

from __future__ import annotations

import re
from collections.abc import Callable

from searchloop.search_backend.readers._html.parts.code import ticked
from searchloop.search_backend.readers._html.parts.formulas import as_formula
from searchloop.search_backend.readers._html.parts.scripts import Scripts, marks
from searchloop.search_backend.readers._html.text import CUT, TAG, plain

_IMAGE = re.compile(r"<img(?: [^<>]*)?>")
_ALT = re.compile(r' alt="([^"]+)"')
_OF_FORMULA = re.compile(
    r'(?i) (?:class|src)="[^"]*(?:\bmath|latex|\btex\b|equation|formula|mimetex)'
)
_IS_TEX = re.compile(r"\\[a-zA-Z]{2}|[\^_]\{|\w\^\w")
# One or two signs that are no letters: an emoji, a star, a tick.
_is_sign = re.compile(r"[^\w\s]{1,4}\ufe0f?").fullmatch
_INLINE = "span|small|font|b|i|u|em|strong|bdi|ins"
_STRUCK_LINK = re.compile(r"(<a [^<>]*line-through[^<>]*>)([^<]*+(?>(?:<(?!/?a[ >])[^<]*+)*))</a>")
# By any length only a number is raised: badges and drawings are moved so, too.
_SCRIPT_LIKE = re.compile(
    rf"<({_INLINE})(?: [^<>]*)?(?:vertical-align: ?(super|sub)\b"
    r'|class="(?:[^"]* )?(super|sup|sub)(?:script)?[ "]'
    r"|(?:vertical-align: ?|[\"; ]top: ?-)[.\d]*[1-9](?=[^<>]*>\s*[-−–+]?\d{1,3}\s*<))[^<>]*>"
    r"([^<]*+(?>(?:<(?!/?\1[ >])[^<]*+)*))</\1>"
)
_FRACTION = re.compile(
    r"(\d(?:<[^<>]*>)*)?<sup(?: [^<>]*)?>\s*(\d+)\s*</sup>\s*"
    r"(?:⁄\s*(?:<sub(?: [^<>]*)?>\s*)?(\d+)(?:\s*</sub>)?"
    r"|/\s*<sub(?: [^<>]*)?>\s*(\d+)\s*</sub>)"
)
# A fraction whose numbers have tags around them, behind a whole number.
_MIXED = re.compile(r"(?<=\d)((?:<[^<>]*>)+)(?=\d+(?:<[^<>]*>)*⁄)")
_SLASH = re.compile(r"(?<=\d)((?:<[^<>]*>)*)⁄((?:<[^<>]*>)*)(?=\d)")
_NO_SCRIPT = re.compile(r"<(?!/?su[bp][ >])[^<>]*>")
# A number over another beside a sign: of Wikipedia, by a class or by hand.
_OVER = re.compile(
    r'<span class="template-chem2-su">\s*<span>([^<]*)</span>\s*<span>([^<]*)</span>\s*</span>'
    r'|<span style="display: ?inline-block;[^"]*vertical-align:[^"]*">'
    r"\s*(?:<sup>)?([^<]*)(?:</sup>)?\s*<br>\s*(?:<sub>)?([^<]*)(?:</sub>)?\s*</span>"
)
_SIGN_LINK = re.compile(
    r"<a( [^<>]*+)>\s*+(?>(?:<[^/][^<>]*+>){0,9})[¶#§🔗⚓↩↑^]\ufe0e?\ufe0f?"
    r"(?>(?:</[^a][^<>]*+>){0,9})\s*+</a>"
)


def stacked(markup: str) -> str:
    """Writes what stands over something else as raised and lowered: of ions and of isotopes."""
    return _OVER.sub(_as_scripts, markup)


def _as_scripts(over: re.Match[str]) -> str:
    raised, lowered = over[1] or over[3] or "", over[2] or over[4] or ""
    scripts = (f"<sup>{raised}</sup>", f"<sub>{lowered}</sub>")
    return "".join(scripts if "right" in over[0] else scripts[::-1])


def is_of_formula(image: str) -> bool:
    """Tells whether an image is one of a formula, by its class or address."""
    # A look at the words first: the pattern tries all of them at each letter.
    said = image.lower()
    is_likely = any(word in said for word in ("math", "tex", "equation", "formula"))
    return is_likely and _OF_FORMULA.search(image) is not None


def inline(pieces: list[str]) -> list[str]:
    """Returns these pieces of markup with text instead of such marks."""
    text = _CUSTOM.sub(r"\1 ", CUT.join(pieces))
    for words, change in _CHANGES:
        if any(word in text for word in words):
            text = change(text)
    return text.split(CUT) if pieces else []


def _code(text: str) -> str:
    found = re.compile(
        rf"<code(?: [^<>]*)?>([^<{CUT}]*+(?>(?:<(?!/?code[ >])[^<{CUT}]*+)*))</code>"
    )
    link = re.compile(r"(\s*<a(?: [^<>]*)?>)([^<]*(?:<(?!/?a[ >])[^<]*)*)(</a>\s*)").fullmatch

    def written(code: re.Match[str]) -> str:
        start, inside, end = linked.groups() if (linked := link(code[1])) else ("", code[1], "")
        inside = _NO_SCRIPT.sub("", inside) if "<a " not in inside else ""
        return f"{start}{ticked(inside.strip())}{end}" if inside.strip() else code[1]

    return found.sub(written, text)


def _struck(text: str) -> str:
    """Marks struck text, in each of the pieces that it runs through."""
    text = _STRUCK_LINK.sub(r"\1<s>\2</s></a>", text)
    tag = re.compile(
        rf"<(?:(s|del|strike)(?: [^<>]*)?|({_INLINE})(?: [^<>]*line-through[^<>]*)"
        rf"|(/?)(s|del|strike|{_INLINE})(?: [^<>]*)?)>|{CUT}"
    )
    opened: list[tuple[str, bool]] = []
    parts: list[str] = []
    held, at = "", 0  # what is struck, and where the text goes on
    for match in tag.finditer(text):
        is_struck = any(strikes for _, strikes in opened)
        held += text[at : match.start()]
        at = match.end()
        if match[0] != CUT:
            name = match[1] or match[2] or match[4]
            if not match[3]:
                opened.append((name, not match[4]))
            elif opened and opened[-1][0] == name:
                opened.pop()
            if is_struck and any(strikes for _, strikes in opened):
                continue
        parts += (_wrapped(held) if is_struck else held, match[0] * (match[0] == CUT))
        held = ""
    return "".join([*parts, text[at:]])


def _wrapped(piece: str) -> str:
    text = piece.strip()
    if not TAG.sub("", text).strip():
        return piece
    before, _, after = piece.partition(text)
    return f"{before}~~{text}~~{after}"


def _reading(text: str) -> str:
    text = re.sub(rf"<rp(?: [^<>]*)?>[^<{CUT}]*</rp>", "", text)
    return re.sub(r"<rt(?: [^<>]*)?>", "(", text).replace("</rt>", ")")


def _images(text: str) -> str:
    def words(image: re.Match[str]) -> str:
        found = _ALT.search(image[0])
        alt = found[1].strip() if found else ""
        if alt and (is_of_formula(image[0]) or _IS_TEX.search(alt)):
            return as_formula(alt, "-display" in image[0])
        return alt if _is_sign(plain(alt)) else image[0]

    return _IMAGE.sub(words, text)


def _anchors(text: str) -> str:
    """Without links from a heading to itself and from a note to its mark."""
    return _SIGN_LINK.sub(lambda link: "" if ' href="#' in link[1] else link[0], text)


def _scripts(text: str) -> str:
    """Raised and lowered characters, and fractions made of them."""
    if "⁄" in text or "/<sub" in text or "/ <sub" in text:
        text = _FRACTION.sub(lambda m: f"{m[1] + ' ' if m[1] else ''}{m[2]}/{m[3] or m[4]}", text)
        text = _SLASH.sub(r"\1/\2", _MIXED.sub(r"\1 ", text))
    return Scripts(text, CUT).written()


def _as_script(raised: re.Match[str]) -> str:
    if not (raised[2] or raised[3] or raised.string[raised.start() - 1].strip("> ")):
        return raised[0]  # another word
    tag = "sub" if "sub" in (raised[2], raised[3]) else "sup"
    return f"<{tag}>{raised[4]}</{tag}>"


# Between two elements that a site has named a sheet elsewhere ends the line.
_CUSTOM = re.compile(r"(</[a-z]++-[^<>]*+>)(?=<[a-z]++-)")
# Words of which one is there when there is something to change.
_CHANGES: tuple[tuple[tuple[str, ...], Callable[[str], str]], ...] = (
    (("<code",), _code),
    (('href="#',), _anchors),
    (("<img",), _images),
    (("<q",), lambda text: re.sub("<q(?: [^<>]*)?>", "“", text).replace("</q>", "”")),
    (("<rt",), _reading),
    (
        ("vertical-align", 'class="su', "top:"),
        lambda text: _SCRIPT_LIKE.sub(_as_script, text),
    ),
    (("<s>", "<s ", "<del", "<strike", "line-through"), _struck),
    (("<sup", "<sub", "⁄"), _scripts),
    (('href="#', "footnote"), marks),
)
