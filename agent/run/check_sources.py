"""Checks the sources of an answer: reads each cited page that nobody has read, then its marks.

A provider that searches by itself cites pages that we never saw. Each of them is read once, through
the search backend and its checks of addresses; what cannot be read stays unread and counts against
nobody. Then a model may read what is still unclear (`check_with`). Progress is a `check` event a
page, and one of the model; their citations replace those of the answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from searchloop.agent.errors import AgentError, ConfigError
from searchloop.agent.guard.guard import GuardFactory
from searchloop.agent.log import EventLog
from searchloop.agent.log.events import citation_data, citation_from, messages_from
from searchloop.agent.log.session import Event, Session, checked
from searchloop.agent.providers import Provider, abilities_of
from searchloop.agent.search.citations import claims_of, compared, judged_together
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.search.verdict_words import unnamed
from searchloop.agent.text import neutral
from searchloop.agent.tools.backend import (
    Backend,
    ChatBackend,
    domain_limits,
    error_words,
    stays_here,
)
from searchloop.agent.tools.dispatcher import Fence
from searchloop.agent.tools.open_page import open_page, whole_page
from searchloop.agent.types import Citation, Mark, Message, NativeSearch, Price, Source
from searchloop.agent.types.attachments import SCHEME

if TYPE_CHECKING:
    from searchloop.agent.run.check_with import ModelSaid, ToRead
    from searchloop.agent.verdicts.page import Page

_MOST = 60  # pages of one answer
_AT_ONCE = 6
_SENTENCES = 100  # of an answer that names no page
_WORTH = "mucsq"  # first letters of verdicts: of several pages, the one that says most decides
_SECONDS = 45.0  # for one page
Refuse = Callable[[str], Awaitable[str | None]]
Record = Callable[[Mapping[str, Any]], Awaitable[None]]
_log = logging.getLogger(__name__)


class PageText(NamedTuple):
    """A page that was read: its text, or why there is none."""

    text: str = ""
    title: str = ""
    status: str = "ok"
    error: str = ""


class Answered(NamedTuple):
    """A finished answer with the verdicts that it has by now, and the pages read before it.

    `read` are those that it read and does not name, where it names none at all.
    """

    turn: int
    text: str
    citations: tuple[Citation, ...]
    table: SourceTable
    transcript: Sequence[Message]
    read: tuple[Source, ...] = ()

    @classmethod
    def of(cls, events: Sequence[Event], turn: int | None = None) -> Answered:
        """Finds the answer to question `turn`, or the last. Raises ConfigError if there is none."""
        events = checked(events)
        asked = [e.seq for e in events if e.type == "user_message"]
        turn = turn or max(asked, default=0)
        after = next((seq for seq in asked if seq > turn), float("inf"))
        ends = [e for e in events if e.type == "run_finished" and turn <= e.seq < after]
        if turn not in asked or not ends:
            raise ConfigError("no_turn", "There is no finished answer here.", "Choose an answer.")
        messages = messages_from(e for e in events if e.seq < after)
        end = ends[-1].data
        citations = tuple(map(citation_from, end["citations"]))
        read = tuple(Source(**each) for each in end["sources"]) if unnamed(end) else ()
        read = tuple(each for each in read if each.state == "opened" and each.n)
        return cls(turn, end["answer"], citations, SourceTable.of(messages), messages, read)


def is_open(mark: Mark) -> bool:
    """Tells whether a mark was not compared with its page."""
    return mark.verdict in (None, "unread") or mark.by == "provider"


def is_unclear(mark: Mark) -> bool:
    """Tells whether a model may read a mark: words alone could not tell."""
    return mark.span is not None and mark.verdict == "unclear"


@dataclass(frozen=True, slots=True)
class ModelReader:
    """A model that reads what words alone leave unclear; `id` is its whole name."""

    id: str
    provider: Provider
    model: str
    price: Price


@dataclass(slots=True)
class Checking:
    """One check of an answer's sources. `refuse` says why an address may not be opened."""

    answered: Answered
    backend: Backend
    refuse: Refuse
    options: NativeSearch
    reader: ModelReader | None
    _now: dict[int, Citation] = field(init=False)
    _texts: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._now = {citation.n: citation for citation in self.answered.citations}

    @property
    def to_open(self) -> list[Citation]:
        """The citations whose page is wanted and was not read in this chat."""
        text = self.answered.table.text
        return [
            c
            for c in self.answered.citations
            if any(map(is_open, c.marks))
            or (self.reader and any(map(is_unclear, c.marks)) and text(c.url) is None)
        ]

    @property
    def marks(self) -> int:
        """How many marks may get another verdict."""
        marks = [mark for c in self.answered.citations for mark in c.marks]
        if self.answered.read:
            return len(self._said())
        return sum(is_open(m) or (self.reader is not None and is_unclear(m)) for m in marks)

    async def run(self, record: Record) -> None:
        """Records a `check` event for each page, and one for the model."""
        opened = self.to_open
        left, to_come = len(opened) + (self.reader is not None), len(opened)
        gate = asyncio.Semaphore(_AT_ONCE)
        tasks = [asyncio.ensure_future(self._page(gate, n, c)) for n, c in enumerate(opened)]
        try:
            for done in asyncio.as_completed(tasks):
                told = await done
                left, to_come = left - 1, to_come - 1
                if not to_come and (more := await asyncio.to_thread(self._together)):
                    told["citations"] = [*told.get("citations", ()), *more]
                await record({**told, "left": left})
        finally:
            for task in tasks:
                task.cancel()
        if self.answered.read:
            found = await asyncio.to_thread(self._found)
            await record({"left": int(self.reader is not None), "citations": found})
        if self.reader:
            await self._ask(self.reader, record)

    def _said(self) -> list[tuple[int, int]]:
        """Returns where the first sentences of the answer are."""
        from searchloop.agent.verdicts.page import Page

        return Page(self.answered.text).spans[:_SENTENCES]

    def _found(self) -> list[dict[str, Any]]:
        """Looks up each sentence of an answer that names no page in the pages that it read.

        What no page says is unclear: the answer never said that one does.
        """
        text, sources = self.answered.text, {each.n or 0: each for each in self.answered.read}
        claims, marks = claims_of(text, ()), dict[int, list[Mark]]()
        pages = self._pages(sources.values())
        for span in self._said():
            found = [(compared(Mark(span), page, claims), n) for n, page in pages.items()]
            ranked = [(_WORTH.find((m.verdict or "-")[0]), -n, m) for m, n in found if m.passage]
            if ranked:
                worth, n, mark = max(ranked, key=lambda each: each[:2])
                mark = mark if worth > 1 else mark._replace(verdict="unclear", quote=None)
                marks.setdefault(-n, []).append(mark)
        for n, own in sorted(marks.items()):
            self._now[n] = Citation(n, sources[n].url, sources[n].title, tuple(own))
        return [citation_data(self._now[n]) for n in sorted(marks)]

    async def _page(self, gate: asyncio.Semaphore, number: int, c: Citation) -> dict[str, Any]:
        """Reads one page and compares its marks."""
        if number >= _MOST:
            found = PageText(status="limit", error=f"Only {_MOST} pages are read.")
        else:
            async with gate:
                found = await _read(c.url, self.backend, self.refuse, self.options)
        told: dict[str, Any] = {"url": c.url, "status": found.status}
        if found.status != "ok":
            return {**told, "error": found.error}
        self._texts[c.n] = neutral(f"{found.title}\n\n{found.text}")
        new = await asyncio.to_thread(self._judged, c)
        changed = [] if new == c else [citation_data(new)]
        self._now[c.n] = new
        return {**told, "citations": changed}

    def _together(self) -> list[dict[str, Any]]:
        """Judges the marks of one place together; returns the citations that changed."""
        claims = claims_of(self.answered.text, self.answered.citations)
        before = tuple(self._now.values())
        after = judged_together(self.answered.text, before, self._pages(before), claims)
        changed = [new for old, new in zip(before, after, strict=True) if new != old]
        self._now |= {c.n: c for c in changed}
        return [citation_data(c) for c in changed]

    def _pages(self, named: Collection[Citation | Source]) -> dict[int, Page]:
        """Returns those pages that were read by now, here or before in this chat."""
        from searchloop.agent.verdicts.page import Page

        table, made = self.answered.table, dict[int, Page]()
        for each in named:
            text = self._texts.get(each.n or 0) or table.text(each.url)
            if text is not None:
                made[each.n or 0] = Page(text)
        return made

    def _judged(self, c: Citation) -> Citation:
        from searchloop.agent.verdicts.page import Page

        page = Page(self._texts[c.n])
        claims = claims_of(self.answered.text, self.answered.citations)
        marks = (compared(m, page, claims) if is_open(m) else m for m in c.marks)
        return c._replace(marks=tuple(marks))

    async def _ask(self, reader: ModelReader, record: Record) -> None:
        """Lets the model read what is unclear."""
        from searchloop.agent.run.check_with import estimate, read_by

        end: dict[str, Any] = {"model": reader.id, "left": 0}
        reads = await asyncio.to_thread(self._unclear)
        if reads:
            tokens = estimate(reader.provider, reader.model, reads.values())
            await record({**end, "left": 1, "tokens": tokens})
            said = await read_by(reader.provider, reader.model, reads)
            end["usage"] = {**said.usage.as_dict(), "cost_usd": reader.price(said.usage)}
            end |= {"error": said.error} if said.error else {}
            end["citations"] = self._changed(reader.id, said.said)
        await record(end)

    def _unclear(self) -> dict[tuple[int, int], ToRead]:
        """Returns what to read for each unclear mark, by (citation, place in it)."""
        from searchloop.agent.run.check_with import to_read

        pages = list(self._pages(self._now.values()).values())
        claims = claims_of(self.answered.text, self.answered.citations)
        found = {
            (c.n, at): to_read(said[0], pages)
            for c in self._now.values()
            for at, mark in enumerate(c.marks)
            if is_unclear(mark) and mark.span and (said := claims().at(*mark.span))
        }
        return {key: read for key, read in found.items() if read.sentences}

    def _changed(self, by: str, said: Mapping[tuple[int, int], ModelSaid]) -> list[dict[str, Any]]:
        """Gives the marks what the model may say of them; returns the citations that changed."""
        for (n, at), told in said.items():
            marks = list(self._now[n].marks)
            marks[at] = marks[at]._replace(verdict=told.verdict, passage=told.sentence, by=by)
            self._now[n] = self._now[n]._replace(marks=tuple(marks))
        return [citation_data(self._now[n]) for n in sorted({n for n, _ in said})]


async def _read(url: str, backend: Backend, refuse: Refuse, options: NativeSearch) -> PageText:
    """Reads a page, or says why it cannot be read."""
    # Which others there are, engines decide: the backend knows their schemes, and refuses the rest.
    if "://" not in url or url.lower().startswith((SCHEME, "file://")):
        return PageText(status="refused", error="This is no address of a page.")
    try:
        if why := await refuse(url):
            return PageText(status="refused", error=why)
        async with asyncio.timeout(_SECONDS):
            page = await whole_page(url, backend, **domain_limits(options))
        if page["status"] == "ok":
            return PageText(page["content"], page["title"])
        return PageText("", "", page["status"], error_words(page.get("error")) or page["status"])
    except TimeoutError:
        return PageText(status="timeout", error=f"The page did not come within {_SECONDS:.0f} s.")
    except AgentError as error:
        return PageText(status="error", error=str(error))


class Checks:
    """The checks that a runner has under way, by answer."""

    def __init__(self, log: EventLog, backend: Backend, guards: GuardFactory) -> None:
        self._log, self._backend, self._guards = log, backend, guards
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def start(
        self,
        session: Session,
        turn: int | None,
        reader: ModelReader | None,
        options: NativeSearch,
        *,
        pressed: bool = True,
    ) -> dict[str, Any] | None:
        """Begins to check an answer, by default the last; returns {turn, pages, marks} at once.

        None if there is nothing to check. Progress comes as `check` events, the last one with
        `left` 0. `pressed`: a person wants it. Raises ConfigError where there is no answer.
        """
        events = await self._log.aside(self._log.read, session.id)
        answered = await asyncio.to_thread(Answered.of, events, turn)
        key = f"{session.id} {answered.turn}"
        refuse = self._refusing(session, answered, pressed=pressed)
        backend = ChatBackend(self._backend, session.id, session.settings)
        checking = Checking(answered, backend, refuse, options, reader)
        told = {"turn": answered.turn, "pages": len(checking.to_open), "marks": checking.marks}
        if not checking.marks:
            return None
        if key not in self._tasks:
            self._tasks[key] = asyncio.create_task(self._run(session.id, checking))
            self._tasks[key].add_done_callback(lambda _: self._tasks.pop(key))
        return told

    async def _run(self, session: str, checking: Checking) -> None:
        async def record(told: Mapping[str, Any]) -> None:
            data = {"turn": checking.answered.turn, **told}
            await self._log.aside(self._log.append, session, [("check", data)])

        try:
            await checking.run(record)
        except AgentError as error:  # the log failed: what is judged so far is stored
            _log.warning("a check of sources has ended early: %s", error)
        except Exception as problem:
            _log.exception("a check of sources failed")
            words = f"searchloop failed: {type(problem).__name__}."
            await record({"left": 0, "error": words})

    def _refusing(self, session: Session, answered: Answered, *, pressed: bool) -> Refuse:
        """Returns what says why the guard does not let an address be opened."""
        guard = self._guards.guard(
            session, self._guards.policy(), "never", answered.table, answered.transcript
        )
        tool = open_page(self._backend, Fence())

        async def refuse(url: str) -> str | None:
            """A person who pressed consents to what others would be asked for."""
            found = (
                None
                if await stays_here(self._backend, url)
                else guard.egress().look(tool, {"url": url})
            )
            if found and (found.refuse or not pressed):
                return found.why
            action, said = guard.policy.decide(tool, {"url": url})
            return said if action == "deny" or (action != "allow" and not pressed) else None

        return refuse

    async def wait(self) -> None:
        """Waits until all that was begun is over."""
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def aclose(self) -> None:
        """Ends what is under way; what is judged so far stays."""
        for task in list(self._tasks.values()):
            task.cancel()
        await self.wait()


def reader_of(model: str, provider: Provider, name: str, price: Price) -> ModelReader:
    """Returns a model that reads. Raises ConfigError for one that cannot."""
    provider.check(name)
    able = abilities_of(provider)
    if not (able.writes or able.decides):
        words = f"{model} is no language model."
        raise ConfigError("no_model", words, "Choose a model that can read.")
    return ModelReader(model, provider, name, price)
