"""One answer whose marks have each of the six verdicts, for every surface that shows them."""

from __future__ import annotations

from typing import Any

TEXT = (
    "Ebb is “at six sharp” [1]. Flood comes “at noon” [1]. The tide turns twice a day [2]. "
    "The harbour is 5 m deep [2]. Nobody swims there [3]. Parking is free [4]."
)
# Number, verdict, quote, passage as Markdown, the passage as people read it.
PLACES: list[tuple[int, str, str | None, str | None, str]] = [
    (1, "quoted", "at six sharp", "Low water is **at six sharp**.", "Low water is at six sharp."),
    (1, "misquoted", "at noon", "The flood is [at one](https://x.ex/).", "The flood is at one."),
    (2, "supported", None, "- The tide *turns* twice daily.", "The tide turns twice daily."),
    (2, "contradicted", None, "| Harbour | 8 m deep |", "Harbour · 8 m deep"),
    (3, "unclear", None, "Some people *swim* in May.", "Some people swim in May."),
    (4, "unread", None, None, ""),
]  # fmt: skip
WORDS = {
    "quoted": "These words stand in the source, by words",
    "misquoted": "These words are not in the source, by words",
    "supported": "The source says so, by ollama:bespoke-minicheck",
    "contradicted": "The source says otherwise, by openai:gpt-6-luna",
    "unclear": "The check cannot tell, by the provider's quotation",
    "unread": "Not read here, only found",
}
BY = {"quoted": "words", "misquoted": "words", "unclear": "provider"}
BY |= {"supported": "ollama:bespoke-minicheck", "contradicted": "openai:gpt-6-luna"}
TITLES = {1: "Tides", 2: "Harbours", 3: "Bathing", 4: "Parking"}
_RIGHT = {"quoted": True, "supported": True, "misquoted": False, "contradicted": False}


def url(n: int) -> str:
    """The address of source `n`."""
    return f"https://{TITLES[n].lower()}.example/page"


def answer() -> dict[str, Any]:
    """Text, citations and sources, as `message` and `run_finished` have them."""
    citations: dict[int, dict[str, Any]] = {}
    at = 0
    for n, verdict, quote, passage, _ in PLACES:
        at = TEXT.index(f"[{n}]", at)
        mark = {"span": [at, at + 3], "quote": quote, "verdict": verdict, "passage": passage}
        mark["by"] = BY.get(verdict)
        at += 3
        made = {"n": n, "url": url(n), "title": TITLES[n], "quote": None, "verified": None}
        known = citations.setdefault(n, {**made, "spans": [], "marks": []})
        known["marks"].append({**mark, "verified": _RIGHT.get(verdict)})
        known["spans"].append(mark["span"])
    sources = [{"n": n, "url": url(n), "title": TITLES[n], "state": "cited"} for n in TITLES]
    return {"text": TEXT, "citations": list(citations.values()), "sources": sources}
