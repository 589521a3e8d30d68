"""Answers that are none: told apart by cause, never a fault of ours, never "nothing found"."""

from __future__ import annotations

import copy
import json
import logging
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from searchloop.search_backend.engines import find_engines
from searchloop.search_backend.fetch.client import run
from searchloop.search_backend.fetch.engine_client import EngineHttp
from searchloop.search_backend.fetch.ip_addresses import parse_ranges
from searchloop.search_backend.plugin import HttpRequest, HttpResponse
from searchloop.search_backend.plugin.answers import retry_after
from searchloop.search_backend.search.merge import Checked, keep, ranked
from searchloop.search_backend.search.schedule import Outcome, Schedule
from searchloop.search_backend.settings import SearchSettings
from searchloop.search_backend.types import EngineError, Query, SearchAnswer, SearchResult
from tests.fakes import FakeServer
from tests.search_backend.search.engine_cases import BY_NAME, CASES, Case
from tests.tables import each_row

# Those that answer in JSON, and of these the ones that search the web.
JSON = [case for case in CASES if case.recording("empty").lstrip()[:1] in b"[{"]
EVERY = each_row("case", JSON)
WEB = each_row("case", [case for case in JSON if case.web])
KEY = "k-0123456789"

# In the place of anything: other types, characters nobody should see, entities and markup without
# end, addresses that lead elsewhere.
ABSENT = object()
PYTHON = re.compile(r"\b(?:None|True|False)\b|[\[{]['\]}]|\[None|<object")  # words of ours, no text
ODD: tuple[Any, ...] = (
    *(None, 0, True, 10**20, "", " ", [], {}, [[]], [None], ["x"], [{}], {"results": []}),
    *("\x00", "\ud800", "\u202eevil", "\U000e0041", f"&#{'1' * 5000};", "&" * 3000, "<a" * 3000),
    *("javascript:alert(1)", "https://", "https://a.example/\ud800", "https://a.example/\u202e"),
    *(ABSENT, False, 1.5, [None, 7], {"a": None}, "https://google.com@evil.example/"),
    *("http://127.0.0.1/", "http://[::1]/", "2026-13-45"),
    *("999 years ago", "Mon, 01 Jan 0001 00:00:00 +2400", "https://a.example/" + "x" * 20_000),
)


def schedule(home: Path, case: Case) -> Schedule:
    """The engine of `case` alone, with its key."""
    settings = SearchSettings(home, (case.name,), keys=case.keys("http://127.0.0.1:9"))
    return Schedule(settings, find_engines(), time.monotonic)


def judged(
    home: Path, case: Case, body: bytes, status: int = 200, headers: dict[str, str] | None = None
) -> Outcome:
    """What comes of this answer of the engine."""
    return outcome_of(schedule(home, case), case, HttpResponse(status, headers or {}, body))


def outcome_of(line: Schedule, case: Case, response: HttpResponse) -> Outcome:
    """What a schedule makes of this answer of the engine."""
    found: Checked | Exception
    try:
        found = line.checked(case.engine, Query("tea"), response)
    except Exception as error:
        found = error
    return line.judge(case.engine, found, 0.05)


def cause(outcome: Outcome) -> str | None:
    """The code of what went wrong."""
    return outcome.attempt.error.code if outcome.attempt.error else None


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value; of a list, those in its longest entry."""
    yield path
    children = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list) and value:
        children = [max(enumerate(value), key=lambda entry: len(json.dumps(entry[1])))]
    for key, child in children:
        yield from places(child, (*path, key))


def few(value: Any) -> Any:
    """A JSON value with two entries of each list."""
    if isinstance(value, dict):
        return {key: few(child) for key, child in value.items()}
    return [few(child) for child in value[:2]] if isinstance(value, list) else value


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """`value` with something else at a place; what lies beside the path is shared."""
    if not path:
        return {} if new is ABSENT else new
    whole = copy.copy(value)
    if new is ABSENT and len(path) == 1:
        del whole[path[0]]
        return whole
    whole[path[0]] = changed(value[path[0]], path[1:], new)
    return whole


@pytest.mark.parametrize("case", JSON, ids=lambda case: case.name)
def test_whatever_stands_in_an_answer(
    tmp_path: Path, case: Case, caplog: pytest.LogCaptureFixture
) -> None:
    """Any odd value in any place of a good answer: results that can be shown and opened, nothing
    found, or a failure with its cause; no fault of ours, and always an answer that can be sent."""
    good, line = few(json.loads(case.recording("results"))), schedule(tmp_path, case)
    fine = (None, "parse", "network") + (("blocked",) if case.name == "searxng" else ())

    def with_(odd: Any, path: tuple[Any, ...]) -> Outcome:
        body = json.dumps(changed(good, path, odd)).encode()
        return outcome_of(line, case, HttpResponse(200, {}, body))

    usual = with_(good, ()).results
    for path in places(good):
        if all(with_(odd, path).results == usual for odd in (ABSENT, 7, [{}])):
            continue  # nobody reads it
        for odd in ODD:
            outcome = with_(odd, path)
            told = f"{odd!r:.80} at {path}: {outcome}"
            assert cause(outcome) in fine, told
            shown = ranked([outcome.results], 8)
            assert bool(shown) is (outcome.attempt.status == "ok"), told
            for one in shown:
                assert one.title, told
                assert not PYTHON.search(one.title + one.snippet), told
                assert re.fullmatch(r"\d{4}-\d\d-\d\d", one.published or "2026-01-01"), told
                assert one.url.startswith("https://") or not case.web, told
                assert one.url.isascii() or "\u202e" not in one.url, told
            answer = SearchAnswer("tea", None, outcome.attempt.status, shown, (outcome.attempt,))
            json.dumps(answer.as_json(), ensure_ascii=False).encode()
    assert not [r for r in caplog.records if r.levelno >= logging.ERROR], caplog.text


@EVERY
@each_row(
    ("said", "kind"),
    [
        ({"error": {"code": "RATE_LIMITED", "message": "Too many requests"}}, "rate"),
        ({"error": {"code": 429, "message": "x"}}, "rate"),
        ({"error": "Invalid API key"}, "auth"),
        ({"message": "Unauthorized.", "statusCode": 403}, "auth"),
        ({"errors": [{"message": "You have exceeded your monthly quota"}]}, "quota"),
        ({"data": None, "code": 402, "status": 40203, "message": "InsufficientBalance"}, "quota"),
        ({"success": False, "message": "boom"}, "network"),
        ({"error": "boom", "results": [], "organic": [], "data": []}, "network"),
    ],
)
def test_a_failure_under_status_200(tmp_path: Path, case: Case, said: Any, kind: str) -> None:
    """An engine that says "200" and then that it failed has not found nothing."""
    assert cause(judged(tmp_path, case, json.dumps(said).encode())) == kind


@EVERY
@each_row("body", [b"{}", b"[]", b"null", b"[1]", b'"x"', b'{"x": []}', b""])
def test_an_answer_without_its_list_is_not_empty(tmp_path: Path, case: Case, body: bytes) -> None:
    """Only a list that is there, and empty, says that nothing was found."""
    if body == b"[]" and case.recording("empty").strip() == body:
        return  # a list is its whole answer
    assert cause(judged(tmp_path, case, body)) == "parse"


@WEB
def test_rows_that_nobody_can_use_are_a_failure(tmp_path: Path, case: Case) -> None:
    """Rows without an address, or with none that can be opened, are not "nothing found"."""
    good = json.loads(case.recording("results"))
    at = next(p for p in places(good) if p and p[-1] in ("url", "link"))
    row = {"title": "Tea", "snippet": "x"}
    for url in (None, 7, "", "javascript:alert(1)", "//a.example/", "http://127.0.0.1/admin"):
        body = json.dumps(changed(good, at[:-2], [{**row, at[-1]: url}] * 3)).encode()
        assert cause(judged(tmp_path, case, body)) == "parse", url


@each_row(
    ("headers", "seconds"),
    [
        ({"retry-after": "99999999999999"}, 31 * 24 * 3600),
        ({"retry-after": "9" * 100}, 31 * 24 * 3600),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "\u0667"}, None),
        ({"retry-after": "Fri, 21 Nov 2025 00:00:00 GMT"}, 0),
        ({"retry-after": "x", "x-ratelimit-remaining": "?"}, None),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, 31 * 24 * 3600),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "nan"}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "inf"}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "-5"}, 0),
    ],
)
def test_when_to_ask_again_is_a_time(headers: dict[str, str], seconds: float | None) -> None:
    """A number of seconds that is none, is past, or has no end."""
    assert retry_after(headers) == seconds


@each_row("filler", range(140, 161, 2))
def test_a_key_that_is_cut_off_does_not_travel_on(tmp_path: Path, filler: int) -> None:
    """An engine repeats the key at the end of a long sentence, of which the beginning is kept."""
    for body in (f"{'y' * filler}{KEY}", json.dumps({"error": f"{'y' * filler}{KEY} z"})):
        outcome = judged(tmp_path, BY_NAME["brave"], body.encode(), 400)
        assert outcome.attempt.error is not None
        assert KEY[:7] not in outcome.attempt.error.message
        assert KEY not in repr(schedule(tmp_path, BY_NAME["brave"]).settings)


def test_only_an_engine_with_a_key_speaks_of_one(tmp_path: Path) -> None:
    """A refusal of another one is told as that."""
    for name, keyed in (("brave", True), ("searxng", False), ("wikipedia", False)):
        problem = judged(tmp_path, BY_NAME[name], b"no", 401).attempt.error
        assert problem is not None
        assert ("key" in problem.message + problem.remedy) is keyed, problem


def test_addresses_that_are_not_public() -> None:
    """They are no results: nobody should be led to the machine or the network they sit in. Ranges
    that the user opened stay open."""
    urls = (
        *("http://localhost:8080/", "http://x.localhost/", "http://10.1.2.3/", "http://[::1]/"),
        *("http://169.254.169.254/latest", "https://198.18.0.9/", "https://8.8.8.8/"),
    )
    found = [SearchResult("x", url, "", "brave") for url in urls]
    assert [one.url for one in keep(found, Query("q")).results] == ["https://8.8.8.8/"]
    kept = keep(found, Query("q"), allow=parse_ranges(["198.18.0.0/15"]))
    assert [one.url for one in kept.results] == ["https://198.18.0.9/", "https://8.8.8.8/"]
    assert kept.unusable == 5


@each_row(
    ("address", "key"),
    [
        *((f"http://{host}/", "k-1") for host in ("a..b", "a" * 70 + ".example", ".x", "", "[::1")),
        *((address, "k-1") for address in ("localhost:8080", "ftp://x.example/", "/x")),
        *(("", key) for key in ("k\r\nX-Evil: 1", "k\x00")),
    ],
)
def test_what_cannot_be_sent_is_a_setting_to_correct(address: str, key: str) -> None:
    """An address that no look-up takes, a key that no header can carry: neither is sent, in no
    form, and to try again is of no use."""
    with FakeServer([]) as server:
        address = address or f"http://127.0.0.1:{server.port}/"
        with pytest.raises(EngineError) as raised:
            run(EngineHttp().send(HttpRequest("GET", address, {"X-Key": key}), "Tea"), timeout=60)
        assert server.requests == []
    assert raised.value.kind == "config"
    assert key not in raised.value.message
