"""Readers elsewhere, asked over the connections that engines use: one request, one page.

The address comes here after the guard's verdict (`verdict.vet`); nothing of it is looked up again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from search_backend.challenge import judge
from search_backend.engine_http import Connections, explain
from search_backend.errors import EngineError
from search_backend.framing import BadAnswer
from search_backend.http_values import HttpResponse
from search_backend.keys import Keys, secrets_in, without_keys
from search_backend.race import Race
from search_backend.readers import Service
from search_backend.types import Page, Problem

# The services themselves are told to give up a little earlier.
SECONDS = 25.0
# What to do about a service that failed; engines have words of their own for the same causes.
_REMEDIES: Mapping[str, str] = {
    "rate": "Wait, or use another reader.",
    "quota": "Raise the limit in your account there, or use another reader.",
    "auth": "Check the key of this reader.",
    "config": "Check the address and the settings of this reader.",
    "blocked": "Wait, or use another reader.",
}

_log = logging.getLogger(__name__)


class ServiceCalls:
    """Asks services with these settings. Safe to use from several threads."""

    def __init__(self, keys: Keys, seconds: float = SECONDS) -> None:
        """`seconds`: how long one page may take."""
        self._keys = keys
        self._seconds = seconds
        self._connections = Connections()
        self._secrets = secrets_in(keys)

    def read(self, service: Service, url: str) -> Page:
        """The page at `url` as the service reads it, or a page with the status that says why not.

        Never raises.
        """
        if missing := service.missing(self._keys):
            names = ", ".join(missing)
            words = f"The reader {service.name} lacks {names}."
            return self._failed(url, Problem("missing_key", words, f"Set {names}."))
        try:
            page = service.parse(self._ask(service, url), url, self._keys)
        except EngineError as error:
            remedy = _REMEDIES.get(error.kind, "Try again later, or use another reader.")
            return self._failed(url, Problem(f"reader_{error.kind}", error.message, remedy))
        except Exception:
            # A reader with a fault must not take the page's other readers down with it.
            _log.exception("reader %s failed", service.name)
            words = f"{service.title} failed inside."
            return self._failed(url, Problem("internal", words, "Use another reader."))
        status, problem = judge(200, page.title, page.text)
        return page if status == "ok" else Page(url, url, "", "", status=status, error=problem)

    def close(self) -> None:
        """Hang up the connections that are kept."""
        self._connections.close()

    def _ask(self, service: Service, url: str) -> HttpResponse:
        until = time.monotonic() + self._seconds
        with Race(self._connections) as race:
            race.send(service.name, service.request(url, self._keys))
            while (left := until - time.monotonic()) > 0:
                for finish in race.wait(left):
                    if isinstance(finish.outcome, OSError | BadAnswer):
                        raise explain(finish.outcome, service.title)
                    if isinstance(finish.outcome, HttpResponse):
                        return finish.outcome
                    raise finish.outcome
        raise EngineError("network", f"{service.title} had not answered after {self._seconds:g} s.")

    def _failed(self, url: str, problem: Problem) -> Page:
        """Services quote what they were sent; a key must not travel on in their words."""
        words = without_keys(problem.message, self._secrets)
        told = Problem(problem.code, words, problem.remedy)
        return Page(url=url, final_url=url, title="", text="", status="error", error=told)
