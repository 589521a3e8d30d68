"""The session's source table: numbers the sources, and stores what was read of them.

The program numbers a URL once, in order of first appearance before the model. A model can only
point at a number, so no citation names a URL that the session has not met. The table also lists the
URLs that may be opened: those the user wrote, a search found, or an opened page links to. An
address in prose is found in every script and without its scheme. One too many does no harm: it
holds nothing that the user did not write, and the guard of the search backend still decides.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from html import unescape

from searchloop.agent.types import Message, Source, SourceState
from searchloop.analysis.addresses import url_key

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
        if message.role == "user" and message.details.keys().isdisjoint(("summary", "imported")):
            self.see(urls_in(message.content))
        met = message.role == "user" or "imported" not in message.details
        for source in message.sources:
            self.restore(source, met=met)
            if message.role == "user":  # a page of a file: of many, only the cited ones are shown
                del self._touched[url_key(source.url)]
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
            known = known._replace(n=max(self._by_number, default=0) + 1)
        return self._keep(key, known)

    def restore(self, source: Source, *, met: bool = True) -> None:
        """Adds a source with the number that it has already. If it was not `met` by this program,
        only a file named it, and it may not be opened unasked.
        """
        key = url_key(source.url)
        known = self._by_key.get(key, source)
        self._keep(key, merged(known, source)._replace(url=source.url), met=met)
        if source.n is not None:  # of a page that once had two numbers, both lead to it
            self._by_number.setdefault(source.n, key)

    def _keep(self, key: str, source: Source, *, met: bool = True) -> Source:
        self._by_key[key] = source
        self._touched[key] = None
        if met:
            self._seen.setdefault(key, source.url)
        if source.n is not None:
            self._by_number[source.n] = key
        return source

    def numbered(self, n: int) -> Source | None:
        """Returns the source of `[n]`, or None."""
        key = self._by_number.get(n)
        return self._by_key[key] if key else None

    def number_at(self, url: str) -> int | None:
        """Returns the number of the source at an address, or None."""
        known = self._by_key.get(url_key(url))
        return known.n if known else None

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
    return known._replace(
        state=max(known.state, new.state, key=_RANK.__getitem__),
        title=known.title or new.title,
        n=known.n or new.n,
        published=known.published or new.published,
    )


def private_mark(urls: Iterable[str]) -> dict[str, bool]:
    """Returns {"private": True} if a URL is a document of the user's own folders, else {}."""
    own = [u for u in urls if u.startswith("library://") and not u.startswith(_PUBLIC)]
    return {"private": True} if own else {}


# Letters of scripts that put no blanks between words, so that prose may touch an address.
_GLUED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3031-\u318f\u31a0-\u31ff"
    "\u3400-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
# Marks that belong to the letter before them.
_MARKS = r"\u0300-\u036f\u0900-\u0963\u0966-\u0df3\u0e31-\u0e4e\u3099\u309a"
# Ends an address: blanks, quotes, and the punctuation of other scripts.
_ENDS = (
    r"\s<>\"`\\^{}|\x00-\x20\x7f-\xa1\xab\xbb\xbf\u037e\u055a-\u055f\u0589\u05c3\u060c\u061b\u061f"
    r"\u066a-\u066d\u06d4\u0700-\u070d\u0964\u0965\u0df4\u0e5a\u0e5b\u0f0d-\u0f12\u104a\u104b"
    r"\u1362-\u1368\u17d4-\u17d6\u1800-\u180a\u200b\u200e-\u200f\u2014-\u206f\u2190-\u21ff\u2308-\u230b\u2329\u232a"
    r"\u3001-\u3003\u3008-\u3011\u3014-\u301b\u301d-\u301f\ufe10-\ufe6b\ufeff\uff01-\uff0f\uff1a-\uff20"
    r"\uff3b-\uff40\uff5b-\uff65"
)
# The patterns below stay text: few questions need one, and together they take 10 ms to compile.
# An address inside of another one follows a separator; after anything else a new one begins.
_REST = rf"(?!(?<![/=?&%])https?://)(?:[^{_ENDS}']|'(?=[^\W\d_]))"
_DOTTED = re.compile(r"\.[^\s.]|localhost|\w:\d{4}|\w:\d+/|\[[\da-f:]*::", re.IGNORECASE)
_ADDRESSES = (
    rf"(?i)(?:https?|library|zim)://(?:{_REST})+",
    # A name of a host without a scheme: labels, one of letters, and perhaps a port and a path.
    r"(?i)(?<![\w@\uff20./:\\%&=#~+-])(?:(?:\d{1,3}\.){3}\d{1,3}(?=[:/]\w)"
    rf"|(?:[\w{_MARKS}-]{{1,63}}\.)+"
    rf"(?:xn--[a-z0-9-]{{2,59}}|(?:[^\W\d_]|[{_MARKS}]){{2,24}}))"
    rf"(?![\w@(]|\.\w)(?::\d{{1,5}})?(?:[/?#](?:{_REST})*)?",
    # A host of the user's own network, by its name or number with a port.
    r"(?i)(?<![a-z0-9_@./:\\%&=#~+-])(?:localhost(?![\w.-])(?=[:/])|(?:[a-z][a-z0-9-]{0,62}"
    r"|\[[\da-f:]{2,39}\])(?=:\d{4,5}(?!\d)|:\d{2,5}/))"
    rf"(?::\d{{1,5}})?(?![\d.:])(?:[/?#](?:{_REST})*)?",
)
# Where prose may begin behind an address, and end in front of one.
_TOUCHES = (
    rf"(?<=[!-~])(?=[{_GLUED}]|[^\w\x00-\x7f])|(?=[\[\u2013\u2600-\u27bf\U0001f000-\U0001faff])"
    rf"|(?<=\.[{_GLUED}]{{2}})(?=[{_GLUED}])|(?<=\.[{_GLUED}]{{3}})(?=[{_GLUED}])"
    r"|(?<=[\u30a0-\u30ff\u3400-\u9fff])(?=[\u3041-\u309f])"
    r"|(?<=[가-힣])(?=(?:을|를|은|는|이|가|의|에서?|으?로|와|과|도)\Z)|(?='[^\W\d_]{1,4}\Z)"
)
# Where an address may begin behind another one, or behind a name as in `url:u.example`.
_JOINS = rf"[,;]|(?<=[^\W\d_]{{2}})[:=](?=\w)|(?<=[{_GLUED}])(?=[A-Za-z0-9])"
_STARTS = rf"(?<=[{_GLUED}])(?=[A-Za-z0-9{_GLUED}])"
# Names of files look like names of hosts; with a path behind it, it is a host.
_FILE = (
    r"(?is)[^/]+\.(?:7z|bak|bz2|cc|cfg|conf|cpp|css?|csv|dart|diff|dll|docx?|env|epub|exe|gif|go|gz|heic"
    r"|hpp|html?|ini|ipynb|java|jpe?g|js|jsonl?|jsx|kt|lock|log|lua|md|mjs|mkv|mp[34]|odt|parquet|patch"
    r"|pdf|php|png|pptx?|proto|ps1|pyc?|rar|rb|rst?|scala|scss|sh|sql|sqlite|svelte|svg|swift|tar|tex"
    r"|tgz|toml|tsx?|txt|vue|wav|webm|webp|whl|xlsx?|xml|ya?ml|zip)"
    r"(?:[:?#].*)?"
)
_MOST_READINGS = 8
_NARROW = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)}


def urls_in(text: str) -> list[str]:
    """Finds the addresses in a text, without the punctuation around them.

    Where prose may touch an address, each possible end gives one. One in full-width letters, or
    with the `&amp;` of a page's source, is found as it is meant, too.
    """
    found: dict[str, None] = {}
    meant = unescape(text).translate(_NARROW if not text.isascii() else {})
    text = text if meant == text else f"{text} {meant}"
    # The tests are far faster than the patterns, and mostly enough.
    words = text.split() if "://" in text or _DOTTED.search(text) else []
    words = [word.removeprefix("//").lstrip("_~") for word in words]
    joined = (re.split(_JOINS, word) for word in words if "." in word)
    for word in (*words, *(part for parts in joined if parts[1:] for part in parts)):
        for match in re.finditer(_ADDRESSES[0], word) if "://" in word else ():
            found |= dict.fromkeys(_readings(match[0]))
        for match in re.finditer(_ADDRESSES[1], word) if "." in word.rstrip(".") else ():
            inside = re.finditer(_STARTS, match[0].partition(".")[0])
            starts = [0, *[begin.start() for begin in inside][-_MOST_READINGS:]]
            for url in (url for at in starts for url in _readings(match[0][at:])):
                if url.startswith("www.") or not re.fullmatch(_FILE, url):
                    found[f"https://{url}"] = None
        for match in re.finditer(_ADDRESSES[2], word) if ":" in word or "localhost" in word else ():
            found |= {f"http://{url}": None for url in _readings(match[0])}
    return list(found)


def _readings(run: str) -> Iterator[str]:
    """Yields the address that takes all of `run`, and those that end where prose may begin."""
    ends = [len(run), *(found.start() for found in re.finditer(_TOUCHES, run))]
    for end in ends[:_MOST_READINGS]:
        url = _trim(run[:end])
        if "." in url or "localhost" in url or (":" in url and not url.endswith("://")):
            yield url


def _trim(url: str) -> str:
    """Removes what follows a bracket that was opened in front of `url`, and final punctuation."""
    depth = {")": 0, "]": 0}
    for at, char in enumerate(url if ")" in url or "]" in url else ""):
        if char in "([":
            depth[")" if char == "(" else "]"] += 1
        elif char in ")]":
            depth[char] -= 1
            if depth[char] < 0:
                url = url[:at]
                break
    return url.rstrip(".,;:!?*_~'([·$&")
