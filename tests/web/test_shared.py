"""Questions from elsewhere: they reach the box and nothing more, and no site can put them there."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tests.web.house import HOST, Answer, allowed, living, make_house, request

_NAMES = {"o": "http://a9.com/-/spec/opensearch/1.1/"}


def asked(tmp_path: Path, *requests: tuple[str, str, Mapping[str, str], bytes]) -> list[Answer]:
    """The answers to (method, target, headers, body), and proof that no model was asked."""

    async def run() -> list[Answer]:
        house = make_house(tmp_path)
        async with living(house) as app:
            found = [await request(app, m, t, h, b or None) for m, t, h, b in requests]
        assert house.log.sessions() == []
        return found

    return asyncio.run(run())


def form(*parts: tuple[str, str, bytes]) -> tuple[str, bytes]:
    """A form (content type, body) of (name, file name or nothing, content)."""
    out = b""
    for name, file, content in parts:
        more = f'; filename="{file}"\r\nContent-Type: text/plain' if file else ""
        out += f'--B\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'.encode()
        out += content + b"\r\n"
    return "multipart/form-data; boundary=B", out + b"--B--\r\n"


def shared(page: Answer) -> Any:
    """What the page is given for its box."""
    [block] = re.findall(rb'<script type="application/json" id="shared">(.*?)</script>', page.body)
    return json.loads(block) if block else None


EVIL = b"</script><script>alert(1)</script><!-- {nonce}"


def test_what_an_app_shares_is_in_the_page_as_data(tmp_path: Path) -> None:
    """Title, text, address and files; hostile ones stay data and end no block."""
    kind, body = form(
        *(("title", "", b"T"), ("text", "", EVIL), ("url", "", b"https://x.example/")),
        ("files", "a.txt", b"inside"),
    )
    head = {"content-type": kind, "sec-fetch-site": "none"}
    heads = [head, {**head, "origin": "null"}, {**head, "origin": f"http://{HOST}"}]
    for page in asked(tmp_path, *(("POST", "/share", allowed(**each), body) for each in heads)):
        told = shared(page)
        assert told["text"] == f"T\n{EVIL.decode()}\nhttps://x.example/"
        assert told["files"] == [{"name": "a.txt", "type": "text/plain", "data": "aW5zaWRl"}]
        assert page.body.count(b"alert(1)") == 1


def test_no_site_can_share(tmp_path: Path) -> None:
    """A form of a site, of an old browser that does not say where it comes from, or of nobody."""
    kind, body = form(("text", "", b"hi"))
    heads = [
        {"sec-fetch-site": "cross-site", "origin": "https://evil.example"},
        *({"sec-fetch-site": site, "origin": "null"} for site in ("cross-site", "same-site")),
        {"sec-fetch-site": "none", "origin": "https://evil.example"},
        {"origin": "null"},
        {},
    ]
    sent = [("POST", "/share", allowed(**{"content-type": kind}, **head), body) for head in heads]
    bare = {"host": HOST, "content-type": kind, "sec-fetch-site": "none"}
    *answers, nobody = asked(tmp_path, *sent, ("POST", "/share", bare, body))
    assert [answer.status for answer in answers] == [403, 403, 403, 403, 403, 415]
    assert nobody.status == 401


def test_no_site_opens_a_question(tmp_path: Path) -> None:
    """A link, a redirect, a frame: the browser says that another site began it."""
    kinds = [(s, m) for s in ("cross-site", "same-site") for m in ("navigate", "no-cors")]
    heads = [allowed(**{"sec-fetch-site": s, "sec-fetch-mode": m}) for s, m in kinds]
    own = allowed(**{"sec-fetch-site": "none", "sec-fetch-mode": "navigate"})
    *foreign, typed = asked(tmp_path, *(("GET", "/?q=hi", head, b"") for head in (*heads, own)))
    told = {(answer.status, answer.error["code"]) for answer in foreign}
    assert (told, typed.status) == ({(403, "cross_site")}, 200)
    assert shared(typed) is None


def test_a_browser_can_add_the_box_to_its_searches(tmp_path: Path) -> None:
    """The description names this server as the browser reached it; it needs no token."""
    [found] = asked(tmp_path, ("GET", "/opensearch.xml", {"host": HOST}, b""))
    assert found.headers["content-type"].startswith("application/opensearchdescription+xml")
    root = ElementTree.fromstring(found.body)
    assert root.findtext("o:ShortName", namespaces=_NAMES) == "searchloop"
    url = root.find("o:Url", _NAMES)
    assert url is not None
    assert url.get("template") == f"http://{HOST}/?q={{searchTerms}}"
