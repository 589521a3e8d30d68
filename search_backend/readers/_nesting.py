"""How deep the tags of a page nest, counted before a parser sees them.

Only an end right after the matching start counts as one, so this errs towards deep. Whatever is
ended right after its start, over and over, is taken out of the count by replacing text; only what
is left goes through the count tag by tag. That takes a third of the time.
"""

from __future__ import annotations

import re

# A parsed element and what is made of it take some 700 bytes.
MOST_ELEMENTS = 60_000
LONGEST_TAG = 8_000
HARMLESS_ATTRIBUTES = 400
DEEPEST = 256
MOST_FORMATTING = 8
REPEATED_NAMES = "a|b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u"
FORMATTING = frozenset(REPEATED_NAMES.split("|"))
# They end by themselves, and a barrier that would let them nest is itself counted.
_SELF_CLOSING = (
    "area base br col embed hr img input link meta param source track wbr "
    "p li dt dd tr td th thead tbody tfoot option optgroup colgroup html head body"
)
NEVER_OPEN = frozenset(_SELF_CLOSING.split())
_ENDS_FORMATTING = frozenset("/" + name for name in FORMATTING)
_SHAPES = (
    "path g circle rect line polygon polyline ellipse use defs symbol stop lineargradient mask "
    "radialgradient clippath filter fegaussianblur feoffset feblend fecolormatrix feflood "
    "fecomposite femergenode pattern animate animatetransform tspan marker"
)
_ENDS_SHAPE = frozenset("/" + name for name in _SHAPES.split())

_RAW_NAMES = ("script", "style", "textarea", "xmp", "iframe", "noembed", "noframes")
# What has no tags inside, up to its end.
_RAW = "|".join(
    rf"(?i:{name})(?=[\s/>])[^>]*+>?[^<]*+(?:<(?!/(?i:{name})[\s/>])[^<]*+)*+"
    for name in _RAW_NAMES
)
_REMARK = r"!--(?:-?>|[^-]*+(?:-(?!-!?>)[^-]*+)*+)|[!?][^>]*+"
# (name, attributes) of a tag, nothing of a comment or of what has no tags inside. It never looks at
# a character twice, and a quote opens a value only behind "=".
MARK = re.compile(
    rf"<(?:{_REMARK}|{_RAW}"
    r"|(/?[a-zA-Z][^\s/>]*+)((?:[^>=]++|=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>\"'][^\s>]*+)?)*+))"
)
# The name of a tag that can be read in one way only and has few attributes. The rest lies between.
_CLEAR = re.compile(
    # What has no tags inside is known by the letters it may begin with: looked at first, they save
    # a tenth of the time.
    rf"<(?:(?![sStTxXiInN](?i:{'|'.join(name[1:] for name in _RAW_NAMES)})[\s/>])"
    r"(/?[a-zA-Z][^\s/<>]*+)(?:>|"
    r"(?:\s*+[^<>=\"']{0,100}+(?<![\s/\"'])=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s<>\"'`]++(?=[\s>])))"
    rf"{{0,64}}+\s*+[^<>=\"']{{0,100}}+>)|{_REMARK}|{_RAW})"
)
# Taking out pairs pays when there are many tags of few kinds; their signs are bytes.
_MANY_TAGS = 8_000
_MOST_KINDS = 100
_ROUNDS = 4
_BRACKETS = b"()" * 128
_QUOTED = re.compile(r"=\s*+(?:\"[^\"]*+\"|'[^']*+')")
_NAME = re.compile(r"[^\s/=]++")


def is_shallow(html: str) -> bool:
    """Whether tags are few enough, never nest deep, nor pile up formatting or attributes, however
    their ends are understood."""
    if html.count("<") > 4 * MOST_ELEMENTS:
        return False
    names = clear_names(html)
    if names is None:
        found = MARK.findall(html)
        if any(len(attributes) > LONGEST_TAG and _many(attributes) for _, attributes in found):
            return False
        names = [name for name, _ in found]
    if (
        len(names) > MOST_ELEMENTS
        and sum(name[:1] not in ("", "/") for name in names) > MOST_ELEMENTS
    ):
        return False
    return nests_little(names)


def clear_names(html: str) -> list[str] | None:
    """The names of the tags, "/" before that of an end; None if any could be read in two ways."""
    parts = _CLEAR.split(html)
    return None if "<" in "".join(parts[::2]) else list(filter(None, parts[1::2]))


def nests_little(names: list[str]) -> bool:
    """Whether these tags never nest deep nor pile up formatting. "" is no tag."""
    ends = {name: _end_of(name.lower()) for name in set(names)}
    kinds = {end: number for number, end in enumerate({*ends.values()} - {""})}
    if len(names) > _MANY_TAGS and len(kinds) <= _MOST_KINDS:
        # Two signs for each kind, an even one for its start and the next one for its end.
        signs = {name: _sign(name, end, kinds) for name, end in ends.items()}
        marks = "".join(map(signs.__getitem__, names)).encode("latin-1")
        others = bytes(
            sign
            for end, kind in kinds.items()
            for sign in (2 * kind, 2 * kind + 1)
            if end not in _ENDS_FORMATTING
        )
        depth = _levels(marks.translate(_BRACKETS), DEEPEST)
        formatting = _levels(marks.translate(_BRACKETS, others), MOST_FORMATTING)
        spoken = [name for end in kinds for name in (end[1:], end)]
        left = [spoken[sign] for sign in _without_pairs(marks, len(kinds))]
        # What was taken out was never deeper than `depth`, wherever in the rest it stood.
        if stays_within(left, ends, DEEPEST - depth, MOST_FORMATTING - formatting):
            return True
    return stays_within(names, ends, DEEPEST, MOST_FORMATTING)


def _sign(name: str, end: str, kinds: dict[str, int]) -> str:
    return chr(2 * kinds[end] + (name[0] == "/")) if end else ""


def _without_pairs(marks: bytes, kinds: int) -> bytes:
    """`marks` without starts that their own end follows, again and again, some levels up."""
    pairs = [bytes((2 * kind, 2 * kind + 1)) for kind in range(kinds)]
    for _ in range(_ROUNDS):
        size = len(marks)
        for pair in pairs:
            marks = marks.replace(pair, b"")
        if len(marks) == size:
            break
    return marks


def _levels(brackets: bytes, most: int) -> int:
    """How deep what is balanced in it nests at most; beyond `most` it is not counted further."""
    for level in range(most):
        size = len(brackets)
        brackets = brackets.replace(b"()", b"")
        if len(brackets) == size:
            return level
    return most


def stays_within(names: list[str], ends: dict[str, str], most: int, formatting: int) -> bool:
    """Whether at most so many tags, and so many of formatting, are ever open at once.

    `ends` keeps what ends each name, and is filled as needed.
    """
    opened: list[str] = []
    for name in names:
        end = ends.get(name)
        if end is None:
            end = ends[name] = _end_of(name.lower())
        if not end:
            continue
        if name[0] != "/":
            opened.append(end)
            formatting -= end in _ENDS_FORMATTING
            if len(opened) > most or formatting < 0:
                return False
        elif opened and opened[-1] == end:
            opened.pop()
            formatting += end in _ENDS_FORMATTING
        elif end == "/svg":
            _end_drawing(opened)
    return True


def _end_drawing(opened: list[str]) -> None:
    """The end of a drawing ends whatever shapes in it were not ended."""
    at = len(opened) - 1
    while at > 0 and opened[at] in _ENDS_SHAPE:
        at -= 1
    if at >= 0 and opened[at] == "/svg":
        del opened[at:]


def _end_of(name: str) -> str:
    """The end tag of a tag that stays open; an end tag itself; nothing for others."""
    if not name or name[0] == "/":
        return "" if name[1:] in NEVER_OPEN else name
    return "" if name in NEVER_OPEN else "/" + name


def _many(attributes: str) -> bool:
    """Whether so many attributes as no page has; the values of a few may be long."""
    return len(_NAME.findall(_QUOTED.sub("= ", attributes))) > HARMLESS_ATTRIBUTES
