"""Selectors of style sheets: what they count, and which elements they could mean at all.

Spec: https://www.w3.org/TR/selectors-4/
"""

from __future__ import annotations

import re

from search_backend.readers._declared import unescape

LONGEST = 500
# One class or id, whatever the tag.
is_simple = re.compile(r"[a-zA-Z0-9]*[.#][\w-]+").fullmatch
_SELECTORS = re.compile(r"[(),]|\\.|\"[^\"]*\"|'[^']*'|\[[^\]]*\]", re.DOTALL)
_NAMES = re.compile(r"([.#])((?:[\w-]|[^\x00-\x7f]|\\[0-9a-fA-F]{1,6}\s?|\\.)+)")
# States of a visitor's hand, and parts that are no element.
_ELSEWHERE = re.compile(r":{1,2}(?:before|after|first-line|first-letter|marker|placeholder"
    r"|selection|backdrop|-[a-z-]+|hover|focus[a-z-]*|active|visited|target|file-[a-z-]+)"
    r"(?![\w-])|::", re.IGNORECASE)  # fmt: skip
_INSIDE = re.compile(r":(?:not|is|where|has)\(")
_BRACKETS = re.compile(r"\[[^\]]*+\]|\((?:[^()]|\((?:[^()]|\([^()]*+\))*+\))*+\)")
_ATTRIBUTE = re.compile(r"\[[^\]]*\]")
# The last name before any pseudo-class.
_LAST = re.compile(
    r"((?:[.#]|(?<![\w:-])(?<![^\x00-\x7f]))(?:[\w-]|[^\x00-\x7f])++)(?::[\w:-]+)?\Z"
)
_SPEC_ID = re.compile(r"#[\w\\-]")
_SPEC_CLASS = re.compile(r"\.[\w\\-]|\[|(?<!:):(?!not|is|where|has|:)[a-z]", re.IGNORECASE)
_SPEC_TAG = re.compile(r"(?:^|[\s>+~(])[a-z]", re.IGNORECASE)


def is_element_at_rest(selector: str) -> bool:
    """Whether a selector means elements as they stand, without a pointer or a focus on them."""
    if ":" in selector and _ELSEWHERE.search(selector):
        return False
    return 0 < len(selector) <= LONGEST


def needed(selector: str) -> frozenset[str]:
    """The classes and ids, with their mark, without which nothing in a page can be meant."""
    outside = _INSIDE.split(selector)[0] if ":" in selector else selector
    outside = _ATTRIBUTE.sub("", outside) if "[" in outside else outside
    return frozenset(mark + unescape(name) for mark, name in _NAMES.findall(outside))


def key_of(selector: str) -> str:
    """A class or id (with its mark) or a tag (lower case) that an element must have to be meant;
    empty if unknown."""
    if "[" in selector or "(" in selector:
        selector = _BRACKETS.sub("", selector)
    if "\\" in selector:
        names = _NAMES.findall(selector)
        is_last = names and selector.endswith(names[-1][1])
        return names[-1][0] + unescape(names[-1][1]) if is_last else ""
    last = _LAST.search(selector[selector.rfind(" ") + 1 :])
    if last is None:
        return ""
    return last[1] if last[1][:1] in ".#" else last[1].lower()


def split_selectors(text: str) -> list[str]:
    """A list of selectors cut at the commas that are not inside brackets."""
    if not any(sign in text for sign in "([\\\"'"):
        return [part.strip() for part in text.split(",")]
    parts, depth, start = [], 0, 0
    for found in _SELECTORS.finditer(text):
        match found[0]:
            case "(":
                depth += 1
            case ")":
                depth -= 1
            case "," if depth == 0:
                parts.append(text[start : found.start()].strip())
                start = found.end()
    return [*parts, text[start:].strip()]


def specificity(selector: str) -> tuple[int, int]:
    """How much a selector counts against others: ids, then classes with tags behind."""
    text = re.sub(r":where\([^()]*\)", "", selector)
    ids, classes = len(_SPEC_ID.findall(text)), len(_SPEC_CLASS.findall(text))
    return ids, 1_000 * classes + len(_SPEC_TAG.findall(text))
