"""The gate: every route, walked; what may come in and with what the answer leaves."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from searchloop.web.app import STREAMED, WebApp
from searchloop.web.gate import MAX_BODY, OPEN_PATHS, Gate
from searchloop.web.gate.access import COOKIE_SECONDS, Access
from tests.tables import each_row
from tests.web.house import HOST, PORT, TOKEN, Answer, allowed, living, make_house, request

PASS = f"{Access(PORT, TOKEN).cookie}={Access(PORT, TOKEN).cookie_value}"


@pytest.fixture(scope="module")
def routes(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """(method, path) of everything that the application answers, with parameters filled in."""
    app = WebApp(make_house(tmp_path_factory.mktemp("house")), Access(PORT, TOKEN))
    found = [
        (method, re.sub(r"<[^>]+>", "x", str(rule)))
        for rule in app.flask.url_map.iter_rules()
        for method in sorted(rule.methods - {"OPTIONS"})
    ]
    return found + [(method, re.sub(r"\{[^}]+\}", "x", path)) for method, path in STREAMED]


class Inner:
    """An application behind the gate that remembers what reached it."""

    def __init__(self, headers: list[tuple[bytes, bytes]] | None = None) -> None:
        self.reached: list[str] = []
        self.bodies: list[bytes] = []
        self.scopes: list[Any] = []
        self._headers = headers or []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.reached.append(f"{scope['method']} {scope['path']}")
        self.scopes.append(scope)
        self.bodies.append((await receive()).get("body", b""))
        await send({"type": "http.response.start", "status": 200, "headers": self._headers})
        await send({"type": "http.response.body", "body": b"in"})


def ask(
    method: str,
    target: str,
    headers: Mapping[str, str],
    inner: Inner | None = None,
    access: Access | None = None,
    **more: Any,
) -> Answer:
    """One request through a gate."""
    gate = Gate(inner or Inner(), access or Access(PORT, TOKEN))
    return asyncio.run(request(gate, method, target, headers, **more))


LINKED = {"sec-fetch-mode": "navigate"}
FROM_ELSEWHERE: Mapping[str, dict[str, str]] = {
    "another host": allowed(host="evil.example"),
    "the right host without its port": allowed(host="127.0.0.1"),
    "another port": allowed(host="127.0.0.1:9999"),
    "a host that starts like ours": allowed(host=f"127.0.0.1.evil.example:{PORT}"),
    "a host with a user part": allowed(host=f"evil@{HOST}"),
    "a trailing dot": allowed(host=f"localhost.:{PORT}"),
    "all zeros": allowed(host=f"0.0.0.0:{PORT}"),
    "no host": {"authorization": f"Bearer {TOKEN}"},
    "a foreign origin": allowed(origin="https://evil.example"),
    "an opaque origin": allowed(origin="null"),
    "an empty origin": allowed(origin=""),
    "the origin of another port": allowed(origin="http://127.0.0.1:3000"),
    "our origin with TLS": allowed(origin=f"https://{HOST}"),
    "another site": allowed(**{"sec-fetch-site": "cross-site"}),
    "a link on another site": allowed(**{**LINKED, "sec-fetch-site": "cross-site"}),
    "another port of this machine": allowed(**{"sec-fetch-site": "same-site"}),
}
WITHOUT_SECRET: Mapping[str, dict[str, str]] = {
    "no token": {"host": HOST},
    "a wrong token": {"host": HOST, "authorization": f"Bearer {TOKEN[1:]}"},
    "an empty token": {"host": HOST, "authorization": "Bearer "},
    "another scheme": {"host": HOST, "authorization": f"Basic {TOKEN}"},
    "a wrong cookie": {"host": HOST, "cookie": f"searchloop_{PORT}=no"},
    "the token itself as cookie": {"host": HOST, "cookie": f"searchloop_{PORT}={TOKEN}"},
    "the cookie of another port": {"host": HOST, "cookie": PASS.replace("8321", "8322")},
    "the cookie of another start": {
        "host": HOST,
        "cookie": f"searchloop_{PORT}={Access(PORT, 'other').cookie_value}",
    },
}


@pytest.mark.parametrize("attack", [*FROM_ELSEWHERE, *WITHOUT_SECRET])
def test_no_route_answers_a_hostile_request(attack: str, routes: list[tuple[str, str]]) -> None:
    """Every method of every route there is refuses it before any handler; none is listed here."""
    found = routes
    assert len(found) >= 20
    if attack in WITHOUT_SECRET:
        found = [(method, path) for method, path in found if path not in OPEN_PATHS]
    headers = {**FROM_ELSEWHERE, **WITHOUT_SECRET}[attack]
    answered = []
    for method, path in found:
        inner = Inner()
        answer = ask(method, path, headers, inner)
        if inner.reached or not 400 <= answer.status < 500:
            answered.append(f"{method} {path}: {answer.status}")
    assert not answered


@each_row(
    "kind",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "text/json", ""],
)
def test_no_route_takes_a_body_that_is_not_json(kind: str, routes: list[tuple[str, str]]) -> None:
    """What a form or a simple cross-site fetch can send is refused on every route that writes."""
    writing = [(m, p) for m, p in routes if m in ("POST", "PATCH", "PUT", "DELETE")]
    assert len(writing) >= 7
    for method, path in writing:
        inner = Inner()
        answer = ask(method, path, allowed(**{"content-type": kind}), inner, body=b"{}")
        assert (answer.status, inner.reached) == (415, []), path


async def test_get_never_does_what_post_does(tmp_path: Path, routes: list[tuple[str, str]]) -> None:
    """Asking for a route with the wrong method is 405, with the methods that it has."""
    async with living(make_house(tmp_path)) as app:
        for method, path in routes:
            for wrong in ("GET", "POST"):
                # Another route may take the last part for a name: /api/mcp/trust, for GET.
                named = re.sub(r"[^/]+$", "x", path)
                if method == wrong or {(wrong, path), (wrong, named)} & set(routes):
                    continue
                answer = await request(app, wrong, path, allowed(), body=None)
                assert answer.status == 405, (wrong, path)
                assert method in answer.headers["allow"]
                assert answer.error["code"] == "method_not_allowed"


@each_row("method", ["OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get"])
def test_other_methods_are_not_used_here(method: str) -> None:
    """A preflight is refused as well, so no other site is ever told that it may."""
    answer = ask(method, "/api/sessions", allowed(**{"x-http-method-override": "POST"}))
    assert answer.status == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]


@each_row("host", [f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"[::1]:{PORT}"])
@each_row("with_origin", [True, False])
def test_our_own_page_comes_in(host: str, with_origin: bool) -> None:
    """All three names of this machine work, with cookie or header."""
    origin = {"origin": f"http://{host}", "sec-fetch-site": "same-origin"} if with_origin else {}
    for secret in ({"authorization": f"Bearer {TOKEN}"}, {"cookie": f"a=b; {PASS}; c=d"}):
        inner = Inner()
        answer = ask("POST", "/api/sessions", {"host": host, **origin, **secret}, inner, body={})
        assert (answer.status, inner.bodies) == (200, [b"{}"])


def test_headers_that_decide_may_not_be_repeated() -> None:
    """Two Host lines mean two opinions; neither is believed."""
    inner, given = Inner(), allowed(origin=f"http://{HOST}")
    for name in ("host", "origin", "authorization", "content-type", "sec-fetch-site"):
        value = given.get(name, "none")
        again = (name, value)
        assert ask("GET", "/", {**given, name: value}, inner, twice=again).status == 400
    assert not inner.reached


def test_the_start_link_lets_a_browser_in() -> None:
    """The token becomes a cookie that scripts and other sites never see, and leaves the address."""
    inner = Inner()
    answer = ask("GET", f"/?token={TOKEN}", {"host": HOST}, inner)
    assert (answer.status, answer.headers["location"], inner.reached) == (303, "/", [])
    cookie, *flags = answer.headers["set-cookie"].split("; ")
    age = f"Max-Age={COOKIE_SECONDS}"  # it outlives the browser
    assert set(flags) == {"Path=/", age, "HttpOnly", "SameSite=Strict"}
    assert cookie.startswith(f"searchloop_{PORT}=")
    assert TOKEN not in answer.headers["set-cookie"]
    assert ask("GET", "/", {"host": HOST, "cookie": cookie}, inner).status == 200


@each_row("query", ["token=", "token=x", f"token={TOKEN}x", "token=%ff", "xtoken=1"])
def test_a_wrong_start_link_sets_nothing(query: str) -> None:
    """A person gets the sign-in page, without a cookie."""
    answer = ask("GET", f"/?{query}", {"host": HOST, "accept": "text/html"})
    assert answer.status == 401
    assert "set-cookie" not in answer.headers
    assert b"<form" in answer.body


def test_health_needs_no_token_but_our_name() -> None:
    """A supervisor may ask whether we are up; another site may not."""
    assert ask("GET", "/api/health", {"host": HOST}).status == 200
    assert ask("GET", "/api/health", {"host": "evil.example"}).status == 403
    assert ask("GET", "/api/health/", {"host": HOST}).status == 401


def test_every_answer_is_sealed() -> None:
    """Refusal or not: the security headers are there and CORS headers are not."""
    leaky = [(b"access-control-allow-origin", b"*"), (b"x-content-type-options", b"sniff")]
    for headers, status in ((allowed(), 200), ({"host": HOST}, 401), ({}, 403)):
        answer = ask("GET", "/api/sessions", headers, Inner(leaky))
        assert answer.status == status
        got = answer.headers
        assert got["x-content-type-options"] == "nosniff"
        assert got["referrer-policy"] == "no-referrer"
        assert got["cross-origin-opener-policy"] == "same-origin"
        assert got["cross-origin-resource-policy"] == "same-origin"
        assert got["cache-control"] == "no-store"
        assert "camera=()" in got["permissions-policy"]
        directives = got["content-security-policy"].split("; ")
        assert directives[0] == "default-src 'none'"
        assert {"script-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"} <= set(directives)
        assert {"connect-src 'self'", "img-src 'self' data:"} <= set(directives)
        assert "require-trusted-types-for 'script'" in directives
        assert len(answer.repeated) == len(got)
        assert not [name for name in got if name.startswith("access-control")]


async def test_a_page_brings_its_own_policy(tmp_path: Path) -> None:
    """Scripts run by a nonce that is new for each load; the gate leaves that policy alone."""
    async with living(make_house(tmp_path)) as app:
        first, second = [await request(app, "GET", "/", allowed()) for _ in range(2)]
    nonces = [
        re.findall(r"nonce-([\w-]+)", a.headers["content-security-policy"]) for a in (first, second)
    ]
    assert len(nonces[0]) == 1
    assert nonces[0] != nonces[1]
    assert f'nonce="{nonces[0][0]}"'.encode() in first.body
    assert b"{nonce}" not in first.body
    assert "unsafe" not in first.headers["content-security-policy"]


def test_a_body_over_the_limit_is_refused_with_the_remedy() -> None:
    """By its announced length, or when it turns out to be too long."""
    json_type = allowed(**{"content-type": "application/json"})
    inner = Inner()
    announced = ask("POST", "/api/sessions", json_type, inner, body=b" " * (MAX_BODY + 1))
    grown = ask("POST", "/api/sessions", json_type, inner, chunks=[b" " * 65536] * 17)
    for answer in (announced, grown):
        assert answer.status == 413
        assert answer.error["code"] == "too_large"
        assert "library add" in answer.error["remedy"]
    assert not inner.reached
    assert ask("POST", "/", json_type, inner, body=b" " * MAX_BODY).status == 200


def test_a_body_in_pieces_arrives_whole() -> None:
    """What is behind the gate sees one body with its length, however it was sent."""
    inner = Inner()
    head = allowed(**{"content-type": "application/json; charset=utf-8"})
    assert ask("POST", "/x", head, inner, chunks=[b'{"a"', b":", b"1}"]).status == 200
    assert inner.bodies == [b'{"a":1}']
    names = dict(inner.scopes[0]["headers"])
    assert names[b"content-length"] == b"7"
    assert b"transfer-encoding" not in names


async def test_a_slow_body_is_cut_off() -> None:
    """A client that stops in the middle holds nothing but its own connection, and not for long."""
    inner = Inner()
    gate = Gate(inner, Access(PORT, TOKEN), body_seconds=0.02)
    head = allowed(**{"content-type": "application/json", "content-length": "2"})
    answer = await request(gate, "POST", "/x", head, chunks=[b"{"], stalls=True)
    assert (answer.status, answer.headers["connection"]) == (408, "close")
    assert not inner.reached


def test_a_failure_behind_the_gate_shows_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """The log has the traceback; the client has one sentence."""

    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("the secret is 42")

    answer = asyncio.run(request(Gate(broken, Access(PORT, TOKEN)), "GET", "/api/models"))
    assert (answer.status, answer.error["code"]) == (500, "internal")
    assert b"42" not in answer.body
    assert "the secret is 42" in caplog.text


def test_bound_to_all_addresses_the_one_called_is_ours() -> None:
    """Who binds 0.0.0.0 is called by an address that we learn from the connection alone."""
    access = Access(PORT, TOKEN, "0.0.0.0", ("mybox",))
    secret = {"authorization": f"Bearer {TOKEN}"}
    gate = Gate(Inner(), access)
    for host, status in ((HOST, 200), (f"mybox:{PORT}", 200), (f"10.0.0.9:{PORT}", 403)):
        answer = asyncio.run(request(gate, "GET", "/x", {"host": host, **secret}))
        assert answer.status == status, host
    assert access.arrived_at(("10.0.0.9", PORT)) == f"10.0.0.9:{PORT}".encode()
    assert access.arrived_at(("fd00::9", PORT)) == f"[fd00::9]:{PORT}".encode()
    assert Access(PORT, TOKEN).arrived_at(("10.0.0.9", PORT)) is None


@each_row("target", ["http://evil.example/", "*", "/?q=\u00e9", "/a\0b"])
def test_odd_request_targets_are_refused(target: str) -> None:
    """Only a path of ours in plain characters is looked at."""
    assert ask("GET", target, allowed()).status == 400


async def test_a_browser_can_add_the_box_to_its_searches(tmp_path: Path) -> None:
    """The description names this server as the browser reached it; it needs no token."""
    async with living(make_house(tmp_path)) as app:
        found = await request(app, "GET", "/opensearch.xml", {"host": HOST})
    assert found.headers["content-type"].startswith("application/opensearchdescription+xml")
    root = ElementTree.fromstring(found.body)
    names = {"o": "http://a9.com/-/spec/opensearch/1.1/"}
    assert root.findtext("o:ShortName", namespaces=names) == "searchloop"
    url = root.find("o:Url", names)
    assert url is not None
    assert url.get("template") == f"http://{HOST}/?q={{searchTerms}}"
