"""The session's source table: numbers the sources, and stores what was read of them.

The program numbers a URL once, in order of first appearance before the model. A model can only
point at a number, so no citation names a URL that the session has not met. The table also lists the
URLs that may be opened: those the user wrote, a search found, or an opened page links to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from searchloop.agent.search.addresses import url_key, urls_in
from searchloop.agent.types import Message, Source, SourceState

_RANK: dict[SourceState, int] = {"found": 0, "opened": 1, "cited": 2}
_PUBLIC = ("library://docs/", "library://pages/")  # our own documents, pages that were opened
_KEPT = 400_000  # characters of one page, the latest read: as much as ten long parts


class SourceTable:
    """Sources by URL, in order of appearance. Rebuilt from the transcript at each run's start."""

    def __init__(self) -> None:
        self._by_key: dict[str, Source] = {}
        self._by_number: dict[int, str] = {}
        self._texts: dict[str, str] = {}
        self._seen: dict[str, str] = {}
        self._touched: dict[str, None] = {}

    @classmethod
    def of(cls, messages: Iterable[Message]) -> SourceTable:
        """Builds the table from these messages."""
        table = cls()
        for message in messages:
            table.remember(message)
        table._touched.clear()
        return table

    def begin_turn(self, question: Message) -> None:
        """Goes on with a question behind the messages that the table knows."""
        self._touched.clear()
        self.remember(question)

    def remember(self, message: Message) -> None:
        """Adds the sources, links and page text of a message."""
        if message.role == "user" and "summary" not in message.details:
            self.see(urls_in(message.content))
        for source in message.sources:
            self.restore(source)
        if message.role == "tool":
            self.see(message.details.get("links", ()))
            start, end = message.details.get("text", (0, 0))
            if end:
                self.read(message.details["url"], message.content[start:end])

    def __len__(self) -> int:
        return len(self._by_number)

    @property
    def numbers(self) -> Collection[int]:
        """The numbers given so far."""
        return self._by_number.keys()

    @property
    def has_texts(self) -> bool:
        """Tells whether the text of any page is there to compare with."""
        return bool(self._texts)

    def meet(
        self,
        url: str,
        title: str = "",
        state: SourceState = "found",
        *,
        number: bool = True,
        published: str | None = None,
    ) -> Source:
        """Adds or updates a source; a state only rises. Numbers it unless `number` is false."""
        key, new = url_key(url), Source(url, title, state, published=published)
        known = merged(self._by_key.get(key, new), new)
        if number and known.n is None:
            known = replace(known, n=max(self._by_number, default=0) + 1)
        return self._keep(key, known)

    def restore(self, source: Source) -> None:
        """Adds a source with the number that it has already."""
        key = url_key(source.url)
        known = self._by_key.get(key, source)
        self._keep(key, replace(merged(known, source), url=source.url))
        if source.n is not None:  # of a page that once had two numbers, both lead to it
            self._by_number.setdefault(source.n, key)

    def _keep(self, key: str, source: Source) -> Source:
        self._by_key[key] = source
        self._touched[key] = None
        self._seen.setdefault(key, source.url)
        if source.n is not None:
            self._by_number[source.n] = key
        return source

    def numbered(self, n: int) -> Source | None:
        """Returns the source of `[n]`, or None."""
        key = self._by_number.get(n)
        return self._by_key[key] if key else None

    def see(self, urls: Iterable[str]) -> None:
        """Adds URLs that the user wrote or a page linked to, so that they may be opened."""
        for url in urls:
            self._seen.setdefault(url_key(url), url)

    def met(self, url: str) -> str | None:
        """Returns the address in the spelling that the session has met, or None.

        A model could hide data in another spelling of the same address, so callers open this one;
        only its scheme may become a secure one.
        """
        known = self._seen.get(url_key(url))
        secure = known and known.startswith("http://") and url.startswith("https://")
        return f"https{known[4:]}" if known and secure else known

    def read(self, url: str, text: str) -> None:
        """Stores the text of an opened page, to check quotes against."""
        key = url_key(url)
        known = self._texts.get(key, "")
        if not known:
            self._texts[key] = text[-_KEPT:]
        elif text not in known:
            self._texts[key] = f"{known}\n{text}"[-_KEPT:]

    def text(self, url: str) -> str | None:
        """Returns the stored text of a page, or None if it was not opened."""
        return self._texts.get(url_key(url))

    def touched(self) -> tuple[Source, ...]:
        """Returns the sources met since the table was made, numbered ones first."""
        met = [self._by_key[key] for key in self._touched]
        return tuple(sorted(met, key=lambda s: (s.n is None, s.n or 0)))


def merged(known: Source, new: Source) -> Source:
    """Merges two mentions of one page; where they differ, the first counts."""
    return replace(
        known,
        state=max(known.state, new.state, key=_RANK.__getitem__),
        title=known.title or new.title,
        n=known.n or new.n,
        published=known.published or new.published,
    )


def private_mark(urls: Iterable[str]) -> dict[str, bool]:
    """Returns {"private": True} if a URL is a document of the user's own folders, else {}."""
    own = [u for u in urls if u.startswith("library://") and not u.startswith(_PUBLIC)]
    return {"private": True} if own else {}
