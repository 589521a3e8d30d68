"""Audits generated reports with planted faults: `python -m bench.audits [--reports 300] [--show]`.

The sentences come from the pages of `bench/own_pages.txt` and `tests/agent/verdicts/written.txt`,
whose true claims people would write so; `--xquad DIR` adds paragraphs of `xquad.LANG.json`. Each
report cites in one of nine styles. A fault is found where the sentence is told to need a look, a
dead address where it is called dead. Some pages cannot be fetched: nothing may be accused there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.claims import MAKERS, TRUE
from bench.own_pages import PAGES
from searchloop.agent.verdicts.check import ACCUSED, TICKED
from searchloop.analysis.sentences import sentences
from searchloop.auditing.results import Audit
from searchloop.auditing.run import Auditor

WRITTEN = Path(__file__).parents[1] / "tests/agent/verdicts/written.txt"
FAULTS = ("dead address", "wrong page", "number", "denial", "quotation", "name", "unit")
_TRUE = tuple(kind for kind in TRUE if kind != "joined")  # one sentence each
_FETCH = ("timeout", "blocked", "login_required", "needs_js", "http_500")
_DEAD = ("not_found", "not_found", "not_reachable")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{3,}")
_NAMES = ("Harrowgate", "Zellweger", "Okonkwo", "Brandvold", "Tessaro")
_SHORTEST = 25  # characters of a sentence that is cited


class Source(NamedTuple):
    """A page: its address, language, text, and true claims about it in other words."""

    url: str
    lang: str
    text: str
    claims: tuple[str, ...]


class Planted(NamedTuple):
    """A sentence of a report: its words, the address it cites, and its fault; "" where it is true,
    "fetch" where it is true and its page does not come."""

    words: str
    url: str
    fault: str = ""


def sources(xquad: Path | None) -> list[Source]:
    """Returns the pages that reports are made from."""
    found = [Source(f"https://own.example/{lang}", lang, text, ()) for lang, text in PAGES.items()]
    for n, section in enumerate(WRITTEN.read_text("utf-8").split("==\n")[1:]):
        text, _, lines = section.partition("\n--\n")
        true = (line[7:] for line in lines.splitlines() if line.startswith("true | "))
        found.append(Source(f"https://written.example/{n}", "en", text, tuple(true)))
    for path in sorted(xquad.glob("*.json")) if xquad else ():
        lang = path.stem.rpartition(".")[2]
        articles = json.loads(path.read_text("utf-8"))["data"] if lang in PAGES else ()
        texts = ["\n\n".join(p["context"] for p in each["paragraphs"]) for each in articles]
        found += [Source(f"https://{lang}.example/{n}", lang, t, ()) for n, t in enumerate(texts)]
    return found


def planted(pages: Sequence[Source], rng: random.Random) -> tuple[list[Planted], dict[str, str]]:
    """Returns the sentences of a report, and the codes of the pages that cannot be read."""
    lang = rng.choice(pages).lang
    of_it = [page for page in pages if page.lang == lang]
    chosen = rng.sample(of_it, min(len(of_it), 3))
    out: list[Planted] = []
    broken: dict[str, str] = {}
    for page in chosen:
        lines = [page.text[a:b] for a, b in sentences(page.text) if b - a > _SHORTEST]
        rng.shuffle(lines)
        for at, line in enumerate(lines[:3]):
            after = lines[-1]
            words = rng.choice(page.claims) if page.claims and rng.random() < 0.3 else ""
            words = words or MAKERS[rng.choice(_TRUE)](line, after, lang, rng) or line
            code = rng.choice(_FETCH) if rng.random() < 0.06 else ""
            url = f"{page.url}?{code}-{at}" if code else page.url
            broken |= {url: code} if code else {}
            out.append(Planted(_flat(words), url, "fetch" if code else ""))
        for fault in rng.sample(FAULTS, 2):
            line = rng.choice(lines[3:-1] or lines[:1])
            words, url = _flat(_made(fault, line, lang, rng)), page.url
            if not words:
                continue
            if fault == "dead address":
                url = f"https://gone.example/{rng.randrange(10**9)}"
                broken[url] = rng.choice(_DEAD)
            elif fault == "wrong page":
                url = next((o.url for o in (*of_it, *pages) if o.text != page.text), page.url)
            out.append(Planted(words, url, fault))
    rng.shuffle(out)
    return list({each.words: each for each in out}.values()), broken


def _made(fault: str, line: str, lang: str, rng: random.Random) -> str:
    kinds = {"number": "number", "denial": "negated", "quotation": "fabricated", "unit": "unit"}
    if fault in kinds:
        return MAKERS[kinds[fault]](line, "", lang, rng)
    if fault == "name":
        found = _NAME.search(line) if lang in ("en", "es", "fr") else None
        name = rng.choice(_NAMES)
        return line[: found.start()] + name + line[found.end() :] if found else ""
    return line


def _flat(words: str) -> str:
    return re.sub(r"^[-*] ", "", " ".join(words.split()))


def written(report: Sequence[Planted], style: int, rng: random.Random) -> str:
    """Writes the report as one of the programs that write reports would."""
    urls = list(dict.fromkeys(each.url for each in report))
    lines, raised = [], str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
    for each in report:
        n = urls.index(each.url) + 1
        mark = (
            *(f" ([{_host(each.url)}]({each.url}))", f" [{n}]", f"[{n}]", f"[^{n}]"),
            *(str(n).translate(raised), f"【{n}†source】", f" ({each.url})", f" [Page][{n}]"),
            f" [[{n}]({each.url})]",
        )[style]
        body = each.words.rstrip(".。")
        closed = body[-1:] in '"”“»」!?！？'
        stop = "" if closed else "。" if re.search(r"[一-鿿]", body) else "."
        early = style in (0, 1, 6) and rng.random() < 0.5
        lines.append(f"{body}{mark}{stop}" if early and stop else f"{body}{stop}{mark}")
    blocks = [" ".join(lines[at : at + 3]) for at in range(0, len(lines), 3)]
    if rng.random() < 0.3:
        blocks = [f"- {line}" for line in lines]
    listed = {
        **{key: [f"[{n}] {url}" for n, url in enumerate(urls, 1)] for key in (1, 2, 5)},
        3: [f"[^{n}]: [Page]({url})" for n, url in enumerate(urls, 1)],
        4: ["#### Works cited", *(f"{n}. Page, {url}" for n, url in enumerate(urls, 1))],
        7: [f'[{n}]: {url} "Page"' for n, url in enumerate(urls, 1)],
    }.get(style, [])
    head = ["Sources:"] if style in (1, 5) else []
    return "# A report\n\n" + "\n\n".join([*blocks, "\n".join([*head, *listed])]) + "\n"


def _host(url: str) -> str:
    return url.split("/")[2]


class Web:
    """Answers for the pages of one report, as a search backend does."""

    def __init__(self, pages: Sequence[Source], broken: Mapping[str, str]) -> None:
        self._texts = {page.url: page.text for page in pages}
        self._broken = broken

    async def ask(self, path: str, payload: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Returns a page, or why there is none."""
        url = str((payload or {})["url"])
        answer = {"url": url, "final_url": url, "title": "", "content": "", "next_offset": None}
        if code := self._broken.get(url):
            status = code if code in ("blocked", "needs_js") else "error"
            error = {"code": code, "message": "It did not come.", "remedy": ""}
            return {**answer, "status": status, "error": error}
        return {**answer, "status": "ok", "error": None, "content": self._texts[url]}


def audited(report: str, web: Web) -> Audit:
    """Audits one report."""
    auditor = Auditor(report, web)
    asyncio.run(auditor.run())
    return auditor.result()


def measure(
    reports: int, pages: Sequence[Source], *, show: bool = False
) -> dict[str, Counter[str]]:
    """Returns for each fault, "true" and "fetch" how many there were, and what was said of them."""
    counts = defaultdict[str, Counter[str]](Counter)
    for seed in range(reports):
        rng = random.Random(seed)
        report, broken = planted(pages, rng)
        text = written(report, seed % 9, rng)
        audit = audited(text, Web(pages, broken))
        for each in report:
            kind = each.fault or "true"
            said = _said(each, audit)
            counts[kind].update((*said, "all"))
            wrong = "found" not in said if each.fault not in ("", "fetch") else "accused" in said
            if show and wrong:
                print(f"{seed % 9} {kind}: {sorted(said)} {each.words}")
    return counts


def _said(each: Planted, audit: Audit) -> set[str]:
    key = _key(each.words)
    alike = [s for s in audit.sentences if (own := _key(s.text)) and (own in key or key in own)]
    sentence = max(alike, key=lambda s: any(c.url == each.url for c in s.citations), default=None)
    if sentence is None:
        return set()
    cited = [c for c in sentence.citations if c.url == each.url]
    held = sentence.verdict in TICKED
    dead = any(c.problem == "dead" for c in cited)
    told = {
        "paired": bool(cited),
        "found": dead if each.fault == "dead address" else bool(cited) and not held,
        "accused": sentence.verdict in ACCUSED,
        "held": held,
    }
    return {name for name, so in told.items() if so}


def _key(words: str) -> str:
    return re.sub(r"\W", "", words)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=300)
    parser.add_argument("--xquad", type=Path, metavar="DIR")
    parser.add_argument("--show", action="store_true", help="print what went wrong")
    args = parser.parse_args(argv)
    counts = measure(args.reports, sources(args.xquad), show=args.show)
    print(f"{'':14} {'sentences':>9} {'paired':>8} {'found':>8} {'accused':>8} {'held':>8}")
    faults = Counter[str]()
    for kind in (*FAULTS, "true", "fetch"):
        count = counts[kind]
        faults += count if kind in FAULTS else Counter()
        _print(kind, count)
    _print("all faults", faults)
    return 0


def _print(kind: str, count: Counter[str]) -> None:
    shares = (count[name] / max(1, count["all"]) for name in ("paired", "found", "accused", "held"))
    print(f"{kind:14} {count['all']:9} " + " ".join(f"{share:8.1%}" for share in shares))


if __name__ == "__main__":
    raise SystemExit(main())
