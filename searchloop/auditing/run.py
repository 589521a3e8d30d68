"""Opens each page that a report cites, once, side by side, and judges the sentences that cite it.

What could not be fetched is said to be that: it never counts against a sentence, and beside such a
page no other one accuses.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from typing import Any
from urllib.parse import urlsplit

from searchloop.agent.errors import AgentError, ConfigError
from searchloop.agent.providers import ProviderRegistry
from searchloop.agent.run.check_sources import ModelReader, reader_of
from searchloop.agent.run.check_with import ToRead, read_by, to_read
from searchloop.agent.run.prices import load_prices, pricer
from searchloop.agent.search.verdict_words import VERDICTS
from searchloop.agent.settings import Settings
from searchloop.agent.tools.backend import Backend, backend_for, error_words
from searchloop.agent.tools.open_page import whole_page
from searchloop.agent.transport.transport import Transport
from searchloop.agent.verdicts.check import ACCUSED, TICKED, Verdict, check_readings
from searchloop.agent.verdicts.page import Page
from searchloop.analysis.addresses import url_key
from searchloop.auditing.pairing import LONGEST, Cited, Paired, Sentence, pair
from searchloop.auditing.results import (
    Audit,
    AuditedCitation,
    AuditedPage,
    AuditedSentence,
    State,
)
from searchloop.compose import search_app
from searchloop.compose.check import Source, read_page

MOST_PAGES = 300
MOST_SENTENCES = 3_000  # that cite something
_AT_ONCE, _OF_A_HOST = 12, 3
_SECONDS = 90.0  # for one page, its readers included
_PASSAGE = 600
_LONG = 2_000  # characters of a claim that no model reads
# The best of the sources of the same words decides: one of them may say it.
_BEST = ("quoted", "supported", "contradicted", "misquoted", "unclear", "unread")
# What became of a page that was not read, by the code of its error.
_PROBLEMS: Mapping[str, tuple[State, str]] = {
    "not_found": ("unreachable", "dead"),
    "login_required": ("refused", "paywalled"),
    "http_402": ("refused", "paywalled"),
    "blocked": ("refused", "blocked"),
    "refused_url": ("refused", "private"),
    "refused_domain": ("refused", "private"),
    "offline": ("unreachable", "offline"),
    "not_reachable": ("unreachable", "not_reachable"),  # perhaps dead
    **dict.fromkeys(
        ("no_text", "unreadable", "unsupported_type", "too_large", "needs_js", "encrypted"),
        ("unreachable", "unreadable"),
    ),
}
# Where these stand in a short page, it is not the page that was cited.
_WALL = re.compile(
    r"(?i)(?:subscribe|(?:log|sign) (?:in|up)|register)(?: now| for free)? to (?:continue|read)"
    r"|already a subscriber|subscribers only|subscribe or sign in|an? (?:free )?account to"
    r"|to continue reading|continue reading with|limit of free articles|purchase (?:this )?article"
    r"|unlock this|subscription content|through your institution|weiterlesen mit|für abonnenten"
    r"|jetzt weiterlesen|réservé aux abonnés|lire la suite|(?:solo|exclusivo) para suscriptores"
    r"|(?:登录|订阅)后(?:查看|阅读)|付费阅读|开通会员|会員(?:限定|登録)"
)
_GONE = re.compile(
    r"(?i)not found|\W*(?:(?:error|fehler|http)\W*)*404\W*(?:(?:error|not|page|file|页).{0,60})?"
    r"|.{0,40}\b(?:page|seite|file|document|article|content)\b.{0,20}?\b(?:not (?:be )?found"
    r"|can(?:['’]?t|not) be found|nicht gefunden|existiert nicht|isn['’]t available|introuvable"
    r"|no longer available)\b.{0,60}|.{0,20}(?:página no e|pagina non trovata).{0,60}"
    r"|.{0,20}(?:页面不存在|找不到页面|ページが見つかりません).{0,30}"
)
_SHORT = 4_000
_BESIDE = "Another page that it cites could not be read."
_PART = "Only a part of the page could be read."


Told = Callable[[AuditedPage, int, int], None]  # a page, how many are done, of how many


@dataclass
class Auditor:
    """Audits one report; `audit` may be called again after a cancellation, for the part so far."""

    report: str
    backend: Backend
    offline: bool = False
    told: Told = lambda page, done, of: None
    title: str = ""
    reader: ModelReader | None = None
    paired: Paired = field(init=False)
    pages: dict[str, AuditedPage] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._verdicts: dict[tuple[int, int, str], Verdict] = {}
        self._unclear: dict[tuple[int, int, str], ToRead] = {}
        self._by: dict[tuple[int, int, str], str] = {}
        self._spent = ""
        self._wants = defaultdict[str, list[tuple[int, Cited]]](list)

    async def run(self) -> None:
        """Opens the pages and judges. What is done stays where this is cancelled."""
        self.paired = await asyncio.to_thread(pair, self.report)
        citing = [s for s in enumerate(self.paired.sentences) if s[1].cited or s[1].near]
        for number, sentence in citing[:MOST_SENTENCES]:
            near = tuple(Cited(url, "", (sentence.claim,)) for url in sentence.near)
            for cited in (*sentence.cited, *near):
                self._wants[cited.url].append((number, cited))
        wanted = [*self._wants, *self.paired.listed]
        urls = [url for url in dict.fromkeys(wanted) if url]
        for url in urls[MOST_PAGES:]:
            reason = f"An audit opens at most {MOST_PAGES} pages."
            self.pages[url] = AuditedPage(url, "unreachable", "limit", reason)
        gate = asyncio.Semaphore(_AT_ONCE)
        hosts = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(_OF_A_HOST))
        done = 0

        async def one(url: str) -> None:
            nonlocal done
            async with hosts[urlsplit(url).netloc], gate:
                self.pages[url] = await self._opened(url)
            done += 1
            self.told(self.pages[url], done, len(urls[:MOST_PAGES]))

        async with asyncio.TaskGroup() as group:
            for url in urls[:MOST_PAGES]:
                group.create_task(one(url))
        if self.reader and self._unclear:
            await self._read_by(self.reader)

    async def _read_by(self, reader: ModelReader) -> None:
        """Lets a model read what is unclear, and keeps a sentence on what that took."""
        reading = await read_by(reader.provider, reader.model, self._unclear)
        for key, said in reading.said.items():
            verdict, why = self._verdicts[key], f"{reader.id} read it so."
            self._verdicts[key] = replace(
                verdict, verdict=said.verdict, passage=said.sentence, reason=why
            )
            self._by[key] = reader.id
        usage, cost = reading.usage, reader.price(reading.usage)
        money = "unknown cost" if cost is None else f"${cost:.4f}"
        spent = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        read = f"{reader.id} read unclear claims ({len(self._unclear)})"
        self._spent = f"{read}: {spent:,} tokens, {money}. {reading.error}".strip()

    async def _opened(self, url: str) -> AuditedPage:
        """Opens a page, judges all that cites it, and keeps no more of it than its name."""
        if _private(url):
            reason = "It is an address of a private network, which is never opened."
            return AuditedPage(url, "refused", "private", reason)
        try:
            async with asyncio.timeout(_SECONDS):
                page = await whole_page(url, self.backend, offline=self.offline)
        except TimeoutError:
            reason = f"The page did not come within {_SECONDS:g} s."
            return AuditedPage(url, "unreachable", "unanswered", reason)
        except AgentError as error:
            return AuditedPage(url, "unreachable", "unanswered", error.message)
        if page["status"] != "ok":
            return _failed(url, page)
        final = page.get("final_url") or url
        moved: State = "read" if url_key(final) == url_key(url) else "redirected"
        found = AuditedPage(
            *(url, moved, "", "", page["title"], final, page.get("published")),
            tuple(page.get("notes", ())),
        )
        if not page["content"].strip():
            return replace(found, state="unreachable", problem="unreadable", reason="It is empty.")
        short = len(page["content"]) < _SHORT
        if await asyncio.to_thread(self._judge, url, page) or not short:
            return found
        gone = _GONE.fullmatch(page["title"].strip())
        if not gone and not _WALL.search(page["content"]):
            return found
        self._forget(url)
        if gone:
            reason = "The site says that it has no such page."
            return replace(found, state="unreachable", problem="dead", reason=reason)
        reason = "The site shows the page to its subscribers only."
        return replace(found, state="refused", problem="paywalled", reason=reason)

    def _judge(self, url: str, page: Mapping[str, Any]) -> bool:
        """Compares each sentence that cites a page with it; tells whether one holds."""
        text = Page(page["content"])
        holds = False
        for number, cited in self._wants[url]:
            verdict = check_readings(cited.readings, text)
            if page.get("cut") and verdict.verdict == "misquoted":
                verdict = replace(verdict, verdict="unclear", reason=f"{verdict.reason} {_PART}")
            self._verdicts[number, cited.group, url] = verdict
            asks = self.reader and verdict.verdict == "unclear" and len(cited.readings[0]) < _LONG
            if asks and (read := to_read(cited.readings[-1], [text])).sentences:
                self._unclear[number, cited.group, url] = read
            holds = holds or verdict.verdict in TICKED
        return holds

    def _forget(self, url: str) -> None:
        for number, cited in self._wants[url]:
            self._verdicts.pop((number, cited.group, url), None)
            self._unclear.pop((number, cited.group, url), None)

    # ---- the result --------------------------------------------------------------------------

    def result(self, *, stopped: bool = False) -> Audit:
        """Returns what is known so far."""
        pages = {url: self._told_apart(page) for url, page in self.pages.items()}
        found = (self._audited(n, s, pages) for n, s in enumerate(self.paired.sentences))
        notes = [self._spent] if self._spent else []
        if self.paired.cut:
            notes.append(f"Only the first {LONGEST:,} characters of the report were audited.")
        many = sum(bool(s.cited) for s in self.paired.sentences)
        if many > MOST_SENTENCES:
            notes.append(f"{MOST_SENTENCES:,} of {many:,} sentences with a source were judged.")
        if any(page.problem == "limit" for page in pages.values()):
            notes.append(f"Only the first {MOST_PAGES} pages were opened.")
        sentences = tuple(each for each in found if each)
        title = self.title or _title(self.paired.text)
        return Audit(
            self.paired.text, title, sentences, tuple(pages.values()), tuple(notes), stopped
        )

    def _told_apart(self, page: AuditedPage) -> AuditedPage:
        """Calls an address dead at which no server answers, while others do."""
        works = any(each.state in ("read", "redirected") for each in self.pages.values())
        if page.problem == "not_reachable":
            return replace(page, problem="dead" if works and not self.offline else "unanswered")
        return page

    def _audited(
        self, number: int, sentence: Sentence, pages: Mapping[str, AuditedPage]
    ) -> AuditedSentence | None:
        span = (sentence.start, sentence.end)
        if not sentence.cited:
            near = (self._verdicts.get((number, 0, url)) for url in sentence.near)
            if not sentence.figures or any(v and v.verdict in TICKED for v in near):
                return None  # what its paragraph cites says it
            return AuditedSentence(sentence.claim, span, (), None)
        cited = [self._citation(number, each, pages) for each in sentence.cited]
        groups = [tuple(_fair(list(g))) for _, g in groupby(cited, lambda each: each.group)]
        best = (min((c.verdict for c in group), key=_BEST.index) for group in groups)
        verdict = min(best, key=VERDICTS.index)
        return AuditedSentence(sentence.claim, span, tuple(chain(*groups)), verdict)

    def _citation(
        self, number: int, cited: Cited, pages: Mapping[str, AuditedPage]
    ) -> AuditedCitation:
        page = pages.get(cited.url)
        if page is None:
            problem = "limit" if cited.url else "unnamed"
            why = "It was not opened." if cited.url else "The report gives no address for it."
            page = AuditedPage(cited.url, "unreachable", problem, why)
        key = (number, cited.group, cited.url)
        verdict = self._verdicts.get(key, Verdict("unread", reason=page.reason))
        by = self._by.get(key, "words")
        passage = verdict.passage[:_PASSAGE] + "…" * (len(verdict.passage) > _PASSAGE)
        return AuditedCitation(
            *(cited.url, cited.mark, page.state, page.problem, verdict.verdict, by, passage),
            *(verdict.reason, page.title, page.published, cited.place, cited.group),
        )


def _fair(group: Sequence[AuditedCitation]) -> Iterator[AuditedCitation]:
    """Yields the sources of the same words: what one does not say, another may."""
    for each in group:
        if each.verdict in ACCUSED and any(other.verdict == "unread" for other in group):
            yield replace(each, verdict="unclear", reason=f"{each.reason} {_BESIDE}")
        elif each.verdict == "misquoted" and any(other.verdict in TICKED for other in group):
            yield replace(each, verdict="unclear")
        else:
            yield each


def _failed(url: str, page: Mapping[str, Any]) -> AuditedPage:
    error = page.get("error")
    code = str(error.get("code", "")) if isinstance(error, Mapping) else ""
    told = _PROBLEMS.get(code) or _PROBLEMS.get(page["status"])
    state, problem = told or ("unreachable", "unanswered")
    return AuditedPage(url, state, problem, error_words(error) or page["status"])


def _private(url: str) -> bool:
    """Tells an address that names a private network itself; others only the backend can tell."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    if host == "localhost" or host.endswith((".localhost", ".local", ".internal")):
        return True
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return False


def _title(text: str) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return re.sub(r"^[#*_\s]+|[*_\s]+$", "", line)[:120]


async def audited(
    report: str,
    settings: Settings,
    *,
    url: str | None = None,
    offline: bool = False,
    model: str | None = None,
    told: Told = lambda page, done, of: None,
) -> Audit:
    """Audits a report, or the one at `url`, with the search backend of these settings.

    `model` is one that reads what words alone leave unclear. Where this is cancelled, the part that
    is done comes back. Raises ConfigError without a report, and for a model that cannot be asked.
    """
    async with aclosing(Transport(offline=settings.offline)) as transport:
        backend = backend_for(settings, transport, search_app(settings))
        read = Source(report) if url is None else await read_page(url, backend)
        if not read.text.strip():
            raise ConfigError("no_source", "The report is empty.", "Give a text with its sources.")
        reader = None
        if model:
            found = ProviderRegistry(settings.env, transport).provider(model)
            reader = reader_of(model, *found, pricer(model, load_prices(settings.home)))
        auditor = Auditor(read.text, backend, offline, told, read.title, reader)
        stopped = False
        try:
            await auditor.run()
        except asyncio.CancelledError:
            if not hasattr(auditor, "paired"):
                raise
            stopped = True
        return auditor.result(stopped=stopped)
