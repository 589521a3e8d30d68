"""Decides which reader reads a web page: here first, a service only if the user has chosen it.

`SEARCH_READERS` is the order. A service is asked if the reader before found a challenge, an empty
shell or no text; not if the page is missing, and never for an address that is refused. The
page names its reader and why others failed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from mimetypes import guess_type
from typing import Any
from urllib.parse import quote

from searchloop.analysis.told import one_of
from searchloop.search_backend.cache.pages import freshness
from searchloop.search_backend.fetch.host_check import ANYWHERE, Rules
from searchloop.search_backend.fetch.http import Fetched
from searchloop.search_backend.pages.worker import UNREADABLE
from searchloop.search_backend.pages.workers import WORKERS
from searchloop.search_backend.plugin.answers import judge
from searchloop.search_backend.plugin.challenge_pages import is_named
from searchloop.search_backend.readers import LOCAL, Service
from searchloop.search_backend.types import (
    FetchFailed,
    FetchRefused,
    Freshness,
    Page,
    Problem,
    ReaderAttempt,
    SearchBackendError,
    failed_page,
)

# Another reader may succeed with these errors; no reader finds a page that does not exist.
_WORTH_ANOTHER = frozenset(
    ("timeout", "bad_response", "tls", "no_text", "unreadable", "too_large", "unsupported_type")
)

USUAL = 900.0
_BROKEN_OFF = frozenset({"deadline", "connection", "encoding", "partial"})

_log = logging.getLogger(__name__)


# `fetch.fetch`, called with an address and `host_allowed`. Raises FetchRefused, FetchFailed.
Fetch = Callable[..., Fetched]
# `host_check.vet`, the check alone, called with an address and `host_allowed`: returns the
# canonical address. Raises FetchRefused.
Vet = Callable[..., str]


class Reading:
    """The readers of these settings. `ask` calls a service and never raises."""

    def __init__(
        self,
        fetch: Fetch,
        vet: Vet | None = None,
        services: Mapping[str, Service] | None = None,
        ask: Callable[[Service, str], Page] | None = None,
        order: Sequence[str] = (LOCAL,),
        usual: float = USUAL,
    ) -> None:
        """`usual`: seconds for which a page is fresh if it does not say."""
        self._fetch = fetch
        self._vet = vet
        self._services = services or {}
        self._ask = ask
        self._order = tuple(order)
        self._usual = usual

    def check(self, reader: str | None) -> None:
        """Raises SearchBackendError for an unknown reader."""
        names = (LOCAL, *self._services)
        if reader is not None and reader not in names:
            what = f"There is no reader named {reader[:60]!r}."
            raise SearchBackendError("unknown_reader", what, one_of(reader, names))

    def page(self, url: str, rules: Rules = ANYWHERE, reader: str | None = None) -> Page:
        """Returns the page, read by `reader` or by the first of the order that can.

        Raises FetchFailed or FetchRefused.
        """
        order = (reader,) if reader else self._order
        attempts: list[ReaderAttempt] = []
        failed: Page | FetchFailed | None = None
        for name in order:
            try:
                page = self._local(url, rules) if name == LOCAL else self._served(name, url, rules)
            except FetchRefused:
                raise
            except FetchFailed as error:
                attempts.append(ReaderAttempt(name, "error", error.problem))
                failed = failed or error
            else:
                attempts.append(ReaderAttempt(name, page.status, page.error))
                if page.status == "ok":
                    told = tuple(attempts) if len(attempts) > 1 else ()
                    return replace(page, reader=name, attempts=told)
                failed = failed or replace(page, reader=name)
            last = attempts[-1]
            code = last.error.code if last.error else ""
            is_worth = last.status in ("needs_js", "blocked") or code in _WORTH_ANOTHER
            if name == LOCAL and not is_worth:
                break
        if isinstance(failed, FetchFailed) and len(attempts) == 1:
            raise failed
        page = failed if isinstance(failed, Page) else failed_page(url, attempts[0].error)
        if len(attempts) > 1:
            return replace(page, attempts=tuple(attempts))
        if page.status not in ("needs_js", "blocked") or page.error is None or not self._services:
            return page
        advice = (
            f"{page.error.remedy} A service can be chosen to open such pages; it is then told the "
            f"address: SEARCH_READERS=local,... with one of {', '.join(self._services)}."
        )
        return replace(page, error=replace(page.error, remedy=advice))

    def _local(self, url: str, rules: Rules) -> Page:
        return read_fetched(self._fetch(url, host_allowed=_test(rules)), self._usual)

    def _served(self, name: str, url: str, rules: Rules) -> Page:
        if self._vet is None or self._ask is None:
            raise TypeError("a service needs `vet` and `ask`")
        address = self._vet(url, host_allowed=_test(rules))
        page = replace(self._ask(self._services[name], address), url=url)
        return page if page.status != "ok" else inside(page, rules)


def read_fetched(fetched: Fetched, usual: float = USUAL) -> Page:
    """Reads the page in an answer on this machine; its status says if that is no page.

    `usual` is its lifetime in seconds if it names none.
    """
    try:
        page = WORKERS.read(
            fetched.body,
            url=fetched.final_url,
            content_type=fetched.content_type,
            charset=fetched.charset,
        )
    except SearchBackendError:  # nobody waits for it any more
        raise
    except Exception:
        _log.exception("a page could not be read")
        page = failed_page(fetched.url, UNREADABLE)
    known = freshness(fetched.headers, time.time(), usual)
    if fetched.cut in _BROKEN_OFF:  # another time there may be more of it
        known = Freshness(0.0, store=False)
    page = replace(
        page,
        url=fetched.url,
        cut=page.cut or fetched.truncated,
        freshness=known,
        redirects=fetched.redirects,
    )
    status, problem = judge(fetched.status, page.challenged or is_named(fetched.headers))
    if status != "ok":
        return replace(page, text="", links=(), status=status, error=problem)
    if page.status == "ok" and not page.text.strip("\ufffd \n"):  # bytes that are no characters
        return replace(page, text="", status="error", error=_NO_TEXT)
    return page


def file_pages(name: str, media_type: str, body: bytes) -> dict[str, Any]:
    """Reads a file that is kept nowhere; returns {title, pages: [text], cut, status, error}.

    A kind without pages has one. A PDF of pictures has status error and pages without text.
    """
    kind = media_type or guess_type(name)[0] or ""
    page = WORKERS.read(body, url=f"file:///{quote(name)}", content_type=kind)
    places = [*page.breaks, len(page.text)] if page.breaks else [0, len(page.text)]
    texts = [page.text[start:end].strip() for start, end in pairwise(places)]
    if page.status == "ok" and not page.text.strip():
        page = replace(page, status="error", error=_NO_TEXT)
    return {
        "title": page.title,
        "pages": texts if page.breaks or page.status == "ok" else [],
        "cut": page.cut,
        "status": page.status,
        "error": page.error.as_json() if page.error else None,
    }


def inside(page: Page, rules: Rules) -> Page:
    """Returns `page`, or a failed page if an address of it is outside the rules."""
    for url in (page.url, *page.redirects, page.final_url):
        if not rules.passes_url(url):
            return failed_page(page.url, _OUTSIDE)
    return page


def _test(rules: Rules) -> Callable[[str], bool] | None:
    return None if rules == ANYWHERE else rules.passes


_NO_TEXT = Problem("no_text", "There is no text on this page.", "Use another source.")
_OUTSIDE = Problem(
    "refused_domain",
    "The domain rules do not allow this page.",
    "Use a page of an allowed domain, or change the rules.",
)
