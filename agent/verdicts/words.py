"""Says in words what the check of marks found; the page's words are in `web/static/locales`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

WORDS = {  # in the order in which several are told
    "contradicted": "The source says otherwise",
    "misquoted": "These words are not in the source",
    "unclear": "The check cannot tell",
    "unread": "Not read here, only found",
    "supported": "The source says so",
    "quoted": "These words stand in the source",
}
NEAREST = ("misquoted", "unclear")  # where a passage is but the nearest there is

_ROW = re.compile(r"^[ \t]*\|(.*?)\|?[ \t]*$", re.M)
_BAR = re.compile(r"[ \t]*(?<!\\)\|[ \t]*")
_RULE = re.compile(r"^[ \t]*\|?[ \t]*:?-{2,}[-:| \t]*$|^[ \t]*(?:```|~~~)\S*[ \t]*$", re.M)
_LEAD = re.compile(r"^[ \t]*(?:>[ \t]?|#{1,6}[ \t]+|[-*+][ \t]+)+", re.M)
_SIGN = re.compile(
    r"\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|(?P<ticks>`+)(?P<code>[^`\n]+)(?P=ticks)|`+"
    r"|!?\[(?P<words>(?:[^\[\]\\]|\\.|\[[^\[\]]*\])*)\]\((?:[^()\n]|\([^()\n]*\))*(?:\)|\Z)"
    r"|<(?P<address>https?://[^<>\s]+)>"
    r"|(?<!\w)[*_]+(?=[^\s*_])|(?<=[^\s*_])[*_]+(?!\w)|(?<=\w)\*\*+(?=\w)|~~"
)


def told(marks: Iterable[Mapping[str, Any]]) -> list[str]:
    """Returns a sentence for each verdict at a source's places; none where nothing was checked."""
    counts = Counter(v for mark in marks if (v := mark.get("verdict")) in WORDS)
    total = counts.total()
    if len(counts) == 1:
        [verdict] = counts
        return [WORDS[verdict] if total == 1 else f"{total} places: {WORDS[verdict]}"]
    return [f"{counts[v]} of {total} places: {WORDS[v]}" for v in WORDS if counts[v]]


def evidence(mark: Mapping[str, Any]) -> str:
    """Returns what one place rests on and its verdict in words; "" where there is neither."""
    verdict = mark.get("verdict") or ""
    quote, passage = (plain(mark.get(name) or "") for name in ("quote", "passage"))
    words, near = WORDS.get(verdict, ""), verdict in NEAREST
    said = passage if words and passage and not near else quote
    words += f"; nearest there: “{passage}”" if near and passage else ""
    return f"{f'“{said}”' if said else ''} {f'({words})' if words else ''}".strip()


def plain(markdown: str) -> str:
    """Returns a passage on one line, without signs of Markdown, whose other half may be missing."""
    text = _ROW.sub(lambda row: _BAR.sub(" · ", row[1]), _RULE.sub("", markdown))
    return " ".join(_SIGN.sub(_kept, _LEAD.sub("", text)).split())


def _kept(sign: re.Match[str]) -> str:
    return sign["escaped"] or sign["code"] or sign["address"] or plain(sign["words"] or "")
