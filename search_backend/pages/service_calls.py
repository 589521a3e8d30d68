"""Calls reading services over the connections that engines use: one request, one page.

`host_check.vet` has checked the address; nothing of it is looked up again.
"""

from __future__ import annotations

import logging
import time

from searchloop.search_backend.fetch.client import in_thread, run
from searchloop.search_backend.fetch.engine_client import EngineHttp
from searchloop.search_backend.plugin import Keys, secrets_in, without_keys
from searchloop.search_backend.plugin.answers import judge
from searchloop.search_backend.plugin.challenge_pages import signs_in_words
from searchloop.search_backend.readers import Service
from searchloop.search_backend.types import EngineError, Page, Problem, failed_page

# The requests ask the services to give up a little earlier.
SECONDS = 25.0
# By the kind of a service's error: what is a setting of it, or of an account there.
_SET_THERE = ("auth", "config", "quota")

_log = logging.getLogger(__name__)


class ServiceCalls:
    """Calls services with these settings. Safe for several threads."""

    def __init__(
        self, keys: Keys, seconds: float = SECONDS, http: EngineHttp | None = None
    ) -> None:
        """`seconds` limits the time for one page."""
        self._keys = keys
        self._seconds = seconds
        self._http = http or EngineHttp()

    def read(self, service: Service, url: str) -> Page:
        """Returns the page as the service reads it, or a failed page; never raises."""
        if missing := service.missing(self._keys):
            names = ", ".join(missing)
            words = f"The reader {service.name} lacks {names}."
            return failed_page(url, Problem("missing_key", words, f"Set {names}."))
        try:
            page = self._page(service, url)
        except EngineError as error:
            is_set = error.kind in _SET_THERE
            what = "Check its key, address and limit" if is_set else "Try again later"
            # Services quote what they receive.
            words = without_keys(error.message, secrets_in(self._keys, service.settings))
            return failed_page(
                url, Problem(f"reader_{error.kind}", words, f"{what}, or use another reader.")
            )
        except Exception:
            # A reader with a fault must not take the page's other readers down with it.
            _log.exception("reader %s failed", service.name)
            words = f"{service.title} failed inside."
            return failed_page(url, Problem("internal", words, "Use another reader."))
        status, problem = judge(200, signs_in_words(page.title, page.text) == 2)
        return page if status == "ok" else failed_page(url, problem, status)

    def _page(self, service: Service, url: str) -> Page:
        """Asks a service, whose own code may never end, in a thread that is given up then."""
        keys, until = self._keys, time.monotonic() + self._seconds

        def left() -> float:
            return max(until - time.monotonic(), 0.0)

        try:
            asked = in_thread(lambda: service.request(url, keys)).result(left())
            answer = run(self._http.send(asked, service.title), timeout=left())
            return in_thread(lambda: service.parse(answer, url, keys)).result(left())
        except TimeoutError:
            words = f"{service.title} had not answered after {self._seconds:g} s."
            raise EngineError("network", words) from None
