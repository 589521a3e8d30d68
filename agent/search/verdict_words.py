"""Says in words what the check of marks found; `words` are texts of `web/static/locales`."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# In the order in which several are told.
VERDICTS = ("contradicted", "misquoted", "unclear", "unread", "supported", "quoted")  # worst first
_LONGEST = 60  # characters of a claim
NEAREST = ("misquoted", "unclear")  # where a passage is but the nearest there is

_ROW = re.compile(r"^[ \t]*\|(.*?)\|?[ \t]*$", re.M)
_BAR = re.compile(r"[ \t]{0,99}(?<!\\)\|[ \t]*")
_RULE = re.compile(r"^[ \t]*+(?:\|[ \t]*+)?:?--[-:| \t]*+$|^[ \t]*(?:```|~~~)\S*[ \t]*$", re.M)
_LEAD = re.compile(r"^[ \t]*(?:>[ \t]?|#{1,6}[ \t]+|[-*+][ \t]+)+", re.M)
_SIGN = re.compile(
    r"\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|(?P<ticks>`+)(?P<code>[^`\n]+)(?P=ticks)|`+"
    r"|!?\[(?P<words>(?:[^\[\]\\]|\\.|\[[^\[\]]*\])*)\]\((?:[^()\n]|\([^()\n]*\))*(?:\)|\Z)"
    r"|<(?P<address>https?://[^<>\s]+)>"
    r"|(?<!\w)[*_]+(?=[^\s*_])|(?<=[^\s*_])[*_]+(?!\w)|(?<=\w)\*\*+(?=\w)|~~"
)


def told(marks: Iterable[Mapping[str, Any]], words: Mapping[str, str]) -> list[str]:
    """Returns a sentence for each verdict at a source's places, and by whom; none where nothing was
    checked."""
    counts = Counter(
        (VERDICTS.index(v), _judged(mark, words))
        for mark in marks
        if (v := mark.get("verdict")) in VERDICTS
    )
    form = words["mark.places" if len(counts) == 1 else "mark.some"]
    form, total = "{words}" if counts.total() == 1 else form, counts.total()
    return [form.format(n=n, of=total, words=said) for (_, said), n in sorted(counts.items())]


def _judged(mark: Mapping[str, Any], words: Mapping[str, str]) -> str:
    """Returns the verdict of a mark and who gave it; "" where there is none."""
    said, by = words.get(f"verdict.{mark.get('verdict')}", ""), mark.get("by")
    by = by and (words.get(f"by.{by}") or words["by.model"].format(model=by))
    return words["list.clauses"].join(filter(None, (said, said and by)))


def unnamed(data: Mapping[str, Any]) -> int:
    """Returns how many pages an answer has read that names none at all; `data` of its end."""
    if data["citations"] or not data["answer"].strip():
        return 0
    return sum(source["state"] == "opened" for source in data["sources"])


def placed(answer: str, citations: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns citations whose marks have as `claim` the words of the answer that each is about."""
    spans = [m["span"] for each in citations for m in each.get("marks", ()) if m.get("span")]
    if not spans:
        return [dict(each) for each in citations]
    from searchloop.agent.search.claims import Claims

    claims = Claims(answer, [(start, end) for start, end in spans])

    def about(mark: Mapping[str, Any]) -> str:
        words = plain("".join(claims.at(*mark["span"])[-1:]) if mark.get("span") else "")
        words = words.rstrip(" .,;:。，；：")
        begin = words[:_LONGEST]
        return words if words == begin else f"{begin.rpartition(' ')[0] or begin}…"

    return [
        {**c, "marks": [{**m, "claim": about(m)} for m in c.get("marks", ())]} for c in citations
    ]


def findings(marks: Iterable[Mapping[str, Any]], words: Mapping[str, str]) -> dict[str, str]:
    """Returns {what a source's places rest on, in words: verdict}, equal ones once.

    Of several, each begins with the words of the answer that it is about, a mark's `claim`, unless
    it quotes them itself.
    """
    found = defaultdict[tuple[str, str], dict[str, None]](dict)
    for mark in marks:
        if said := evidence(mark, words):
            claim, about = mark.get("claim") or "", found[said, mark.get("verdict") or ""]
            about |= {} if claim.strip('“”„"«»… ') in said else {claim: None}
    return {
        f"{' / '.join(about) if len(found) > 1 else ''} → {said}".removeprefix(" → "): verdict
        for (said, verdict), about in found.items()
    }


def evidence(mark: Mapping[str, Any], words: Mapping[str, str]) -> str:
    """Returns what one place rests on and its verdict and by whom; "" where neither is there."""
    quote, passage = (plain(mark.get(name) or "") for name in ("quote", "passage"))
    told, near = _judged(mark, words), mark.get("verdict") in NEAREST
    said = passage if told and passage and not near else quote
    said = words["mark.said"].format(said=said) if said else ""
    told = words["mark.nearest"].format(words=told, passage=passage) if near and passage else told
    return words["mark.found"].format(said=said, words=told).strip() if told else said


def plain(markdown: str) -> str:
    """Returns a passage on one line, without signs of Markdown, whose other half may be missing."""
    text = _ROW.sub(lambda row: _BAR.sub(" · ", row[1]), _RULE.sub("", markdown))
    return " ".join(_SIGN.sub(_kept, _LEAD.sub("", text)).split())


def _kept(sign: re.Match[str]) -> str:
    return sign["escaped"] or sign["code"] or sign["address"] or plain(sign["words"] or "")
