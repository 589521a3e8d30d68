"""Kiwix archives (.zim): Wikipedia and other works on this machine, searched without a network.

The archives bring their own full-text index. Results have addresses zim://ARCHIVE/PATH, which
`open_page` reads like pages. The package libzim is GPL-3.0-or-later: it is used only when the user
has installed it (extra `zim`). https://openzim.org/wiki/ZIM_file_format
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urldefrag

from searchloop.analysis.language import language
from searchloop.analysis.terms import stop_words, wanted
from searchloop.search_backend.engines import Access, Engine
from searchloop.search_backend.fetch.http import Fetched
from searchloop.search_backend.library.file_text import ReadPage
from searchloop.search_backend.plugin import Keys, Setting, web_form
from searchloop.search_backend.text.clean import one_line
from searchloop.search_backend.text.ranking import excerpt
from searchloop.search_backend.types import EngineError, Query, SearchBackendError, SearchResult

SCHEME = "zim"
SETTINGS = (Setting("ZIM_FILES", "Kiwix archives: .zim files or folders of them, a comma list"),)
MOST_BYTES = 20 * 2**20
# For an extract this much of an article is looked at: bytes, and characters of its text.
MOST_MARKUP, MOST_TEXT = 1_000_000, 20_000
MOST_TERMS = 6
# With several words, an article must hold this share of them when none holds all.
LEAST_SHARE = 0.5
RANK_CONSTANT = 60
_SAFE = "/:@!$&'()*+,;=-._~"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenArchive:
    """An open archive. libzim may read from several threads, but search from one only."""

    name: str
    archive: Any
    lock: threading.Lock


def search(query: Query, access: Access) -> list[SearchResult]:
    """Returns the best articles of all archives in turn, each with its best passage."""
    stops = stop_words(language(query.text) or "en")
    every = dict.fromkeys(word.strip("_") for word in re.findall(r"\w+", query.text.lower()))
    terms = [word for word in every if word and word not in stops] or [*filter(None, every)]
    terms = terms[:MOST_TERMS]
    if not terms:
        return []
    lists = [
        [(opened, path) for path in _found(opened, terms, query.max_results)]
        for opened in _archives(access.keys).values()
    ]
    turns = [one[at] for at in range(query.max_results) for one in lists if at < len(one)]
    read = access.library.read
    results = (_result(opened, path, terms, read) for opened, path in turns[: query.max_results])
    return [result for result in results if result is not None]


def open_document(url: str, access: Access) -> Fetched:
    """Returns the document at zim://ARCHIVE/PATH after redirects inside the archive."""
    name, _, path = urldefrag(url).url.partition("://")[2].partition("/")
    opened = _archives(access.keys).get(name.lower())
    if opened is None:
        raise _missing(f"There is no archive {name[:60]!r} among ZIM_FILES.")
    try:
        found = opened.archive
        entry = found.get_entry_by_path(unquote(path)) if path else found.main_entry
        item = entry.get_item()
        size, kind, own = int(item.size), str(item.mimetype), str(item.path)
        if size > MOST_BYTES:
            what = f"The document has {size:,} bytes."
            raise SearchBackendError("too_large", what, "Use another document.")
        body = bytes(item.content)
    except KeyError:
        raise _missing(f"The archive {opened.name} has no document at this address.") from None
    except RuntimeError as error:
        raise _broken(opened.name, error) from error
    plain, _, parameters = kind.partition(";")
    charset = re.search(r"charset=([\w-]+)", parameters)
    return Fetched(
        url=url,
        final_url=web_form(SCHEME, opened.name, quote(own, safe=_SAFE)),
        status=200,
        content_type=plain.strip().lower(),
        charset=charset[1].lower() if charset else "utf-8",
        body=body,
    )


def _found(opened: OpenArchive, terms: list[str], most: int) -> list[str]:
    """Returns paths of articles with all words, then of those with most of them."""
    with opened.lock:
        try:
            found = _paths(opened.archive, " ".join(terms), most)
            if len(found) < most and len(terms) > 1:
                scores: dict[str, list[float]] = {}
                for term in terms:
                    for rank, path in enumerate(_paths(opened.archive, term, most * 4), 1):
                        scores.setdefault(path, []).append(1 / (RANK_CONSTANT + rank))
                enough = [p for p, s in scores.items() if len(s) >= len(terms) * LEAST_SHARE]
                enough.sort(key=lambda path: -sum(scores[path]))
                found = list(dict.fromkeys([*found, *enough]))
        except RuntimeError as error:
            raise EngineError("parse", *_words(opened.name, error)) from error
    return found[:most]


def _paths(archive: Any, words: str, most: int) -> list[str]:
    """Searches the full text, or the titles in an archive without a full-text index."""
    from libzim.search import Query as ZimQuery  # type: ignore[import-untyped,unused-ignore]
    from libzim.search import Searcher  # type: ignore[import-untyped,unused-ignore]
    from libzim.suggestion import SuggestionSearcher  # type: ignore[import-untyped,unused-ignore]

    if archive.has_fulltext_index:
        hits = Searcher(archive).search(ZimQuery().set_query(words))
    else:
        hits = SuggestionSearcher(archive).suggest(words)
    return list(hits.getResults(0, most))


def _result(
    opened: OpenArchive, path: str, terms: list[str], read: ReadPage
) -> SearchResult | None:
    try:
        entry = opened.archive.get_entry_by_path(path)
        item = entry.get_item()
        is_text = str(item.mimetype).startswith("text/") and int(item.size) <= MOST_MARKUP
        body = bytes(item.content) if is_text else b""
        title, own = str(entry.title), str(item.path)
    except (KeyError, RuntimeError) as error:
        _log.warning("an entry of %s cannot be read: %s", opened.name, error)
        return None
    url = f"{SCHEME}://{opened.name}/{quote(own, safe=_SAFE)}"
    text = read(body, url=url, content_type="text/html", charset="utf-8").text if body else ""
    told = excerpt(text[:MOST_TEXT], wanted(" ".join(terms)))
    return SearchResult(one_line(title) or own, url, told, source=SCHEME)


def _archives(keys: Keys) -> Mapping[str, OpenArchive]:
    """Opens the archives and returns them by name. Raises EngineError."""
    files: list[Path] = []
    for part in (part.strip() for part in keys.get("ZIM_FILES", "").split(",")):
        path = Path(part).expanduser()
        files += sorted(path.glob("*.zim")) if part and path.is_dir() else [path] if part else []
    try:
        stamps = tuple((str(file), file.stat().st_mtime_ns) for file in files)
    except OSError as error:
        what = f"{error.filename} cannot be read: {error.strerror}."
        remedy = "Correct ZIM_FILES; archives are at https://library.kiwix.org."
        raise EngineError("config", what, remedy) from error
    return _opened(stamps)


@lru_cache(maxsize=4)
def _opened(stamps: tuple[tuple[str, int], ...]) -> Mapping[str, OpenArchive]:
    # GPL, 30 MB, and needed only by users of archives.
    try:
        from libzim.reader import Archive  # type: ignore[import-untyped,unused-ignore]
    except ImportError as error:
        what = "Reading ZIM files needs the package libzim, which is not installed."
        raise EngineError("config", what, "Install it: pip install 'searchloop[zim]'.") from error
    found: dict[str, OpenArchive] = {}
    for file, _ in stamps:
        stem = re.sub(r"[^a-z0-9_-]+", "-", Path(file).stem.lower()).strip("-_")[:50] or SCHEME
        name = next(n for i in range(99) if (n := f"{stem}-{i + 1}" if i else stem) not in found)
        try:
            found[name] = OpenArchive(name, Archive(Path(file)), threading.Lock())
        except RuntimeError as error:
            raise EngineError("config", *_words(file, error)) from error
    return found


def _missing(message: str) -> SearchBackendError:
    return SearchBackendError("not_found", message, "Search again for the document.")


def _broken(name: str, error: Exception) -> SearchBackendError:
    return SearchBackendError("bad_archive", *_words(name, error))


def _words(name: str, error: Exception) -> tuple[str, str]:
    said = one_line(str(error), 160).rstrip(".")
    return f"The archive {name} cannot be read ({said}).", "Get it again; it may be incomplete."


ENGINE = Engine(
    SCHEME,
    "ZIM archives (offline Wikipedia)",
    search,
    needs=("ZIM_FILES",),
    remote=False,
    settings=SETTINGS,
    scheme=SCHEME,
    open=open_document,
    package="libzim",
)
