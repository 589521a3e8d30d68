"""A claim held against a text, a file or a page: over HTTP, and as a library."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import searchloop
from searchloop.agent.errors import ConfigError
from searchloop.agent.tools.backend import LocalBackend
from searchloop.compose.check import Source, check_text, read_page
from tests.web.house import living, make_house, request

TEXT = "The bridge was opened in 1931. " + "It is old. " * 9000 + "It carries 81,365 cars a day."


def backend(**answer: Any) -> LocalBackend:
    """A search backend whose page is TEXT in parts, or this answer."""

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        asked = json.loads(environ["wsgi.input"].read())
        start = asked["offset"]
        end = start + min(asked["max_length"], 40_000)
        part = {
            "content": TEXT[start:end],
            "title": "Bridges",
            "status": "ok",
            "next_offset": end if end < len(TEXT) else None,
        }
        start_response("200 OK", [])
        return [json.dumps({**part, **answer}).encode()]

    return LocalBackend(app)


def test_a_long_page_is_read_to_its_end() -> None:
    """What stands behind the first part counts as well; a part that repeats ends the reading."""
    assert asyncio.run(read_page("https://a.example/", backend())) == Source(TEXT, "Bridges")
    again = asyncio.run(read_page("https://a.example/", backend(next_offset=0)))
    assert again == Source(TEXT[:40_000], "Bridges")


def test_what_changes_the_meaning_of_a_page_is_told() -> None:
    """A stored copy, another address and a page that is cut, each in one sentence and once."""
    stale = {"code": "timeout", "message": "No answer in time.", "remedy": ""}
    seen = backend(stale=stale, age=200 * 86_400, cut=True, final_url="https://b.example/")
    told = asyncio.run(read_page("https://a.example/", seen)).notes
    for part, words in zip(
        told, ("led to another", "could not be loaded now", "200 days old", "longer"), strict=True
    ):
        assert words in part
    verdict = check_text("It carries 81 365 cars a day.", Source(TEXT, "Bridges", told))
    assert (verdict.verdict, verdict.notes) == ("supported", told)


def test_a_page_that_cannot_be_read_is_named() -> None:
    """The address and the reason, in one sentence."""
    error = {"code": "blocked", "message": "The site asks for a CAPTCHA.", "remedy": ""}
    with pytest.raises(ConfigError, match="could not be read: The site asks"):
        asyncio.run(read_page("https://a.example/", backend(status="blocked", error=error)))


async def test_the_api_checks_texts_and_pages(tmp_path: Path) -> None:
    """POST /api/check: verdict, passage and its place, reason; errors in words."""
    house = make_house(tmp_path)
    house.backend = backend()
    text = "The bridge was opened in 1931."
    async with living(house) as app:

        async def ask(**body: Any) -> Any:
            return await request(app, "POST", "/api/check", body=body)

        found = (await ask(claim="The bridge was opened in 1932.", text=text)).data
        assert found["verdict"] == "contradicted"
        assert text[found["start"] : found["end"]] == found["passage"]
        assert found["reason"]
        page = await ask(claim="It carries 81 365 cars a day.", url="https://a.example/")
        assert page.data["verdict"] == "supported"
        for body, words in (
            ({"claim": "x"}, "one source"),
            ({"claim": "x", "text": "a", "url": "https://a.example/"}, "one source"),
            ({"claim": " ", "text": "a"}, "claim is empty"),
            ({"claim": " ", "url": "https://a.example/"}, "claim is empty"),
            ({"claim": "x", "text": "\x01\ufffd" * 9}, "no readable text"),
            ({"claim": "x", "text": ""}, "no text"),
            ({"claim": "x", "url": ""}, "one source"),
            ({"text": "a"}, "claim"),
        ):
            refused = await ask(**body)
            assert refused.status == 400
            assert words in refused.error["message"]


def test_the_library_checks_texts_and_files(tmp_path: Path) -> None:
    """`searchloop.check`, also where a loop is running already, as in a notebook."""
    (tmp_path / "page.txt").write_text("The bridge was opened in 1931.", "utf-8")
    claim = "The bridge was opened in 1931."

    async def notebook() -> searchloop.Verdict:
        return searchloop.check(claim, file=tmp_path / "page.txt")

    assert asyncio.run(notebook()).verdict == "supported"
    assert searchloop.check(claim, text="It was never opened.").verdict != "supported"
    with pytest.raises(ConfigError, match="one source"):
        searchloop.check(claim)
