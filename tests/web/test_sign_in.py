"""Signing in: links that work once, the kept token, the page for browsers, guesses, sockets."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from searchloop.agent.errors import ConfigError
from searchloop.render.words import words_of
from searchloop.web.gate import Gate, sign_in
from searchloop.web.gate.access import (
    SHORTEST,
    TOKEN_FILE,
    Access,
    Guesses,
    KeptToken,
    People,
    StartLinks,
)
from searchloop.web.serve import OK
from tests.search_backend.chains import Clock
from tests.tables import each_row
from tests.waiting import until
from tests.web.house import (
    HOST,
    PORT,
    TOKEN,
    Answer,
    allowed,
    living,
    make_house,
    request,
)
from tests.web.test_gate import Inner
from tests.web.test_serve import ROOT, Running, refused

BROWSER = {"host": HOST, "accept": "text/html,*/*;q=0.8"}


def ask(access: Access, method: str, target: str, headers: Any, **more: Any) -> Answer:
    """One request through a gate with this access."""
    return asyncio.run(request(Gate(Inner(), access), method, target, headers, **more))


def form(token: str, **more: str) -> dict[str, Any]:
    """What a browser sends from the sign-in page."""
    headers = {
        **BROWSER,
        "origin": f"http://{HOST}",
        "sec-fetch-site": "same-origin",
        "content-type": "application/x-www-form-urlencoded",
        **more,
    }
    return {"headers": headers, "body": f"user=searchloop&token={quote(token)}".encode()}


def test_a_start_link_works_once() -> None:
    """The second time it is a page that says so; a link that nobody used dies by itself. HEAD,
    which checkers of links send, is no visit."""
    clock = Clock()
    access = Access(PORT, TOKEN, links=StartLinks(clock))
    link, unused = access.start_path(), access.start_path(60)
    assert TOKEN not in link
    assert ask(access, "HEAD", link, BROWSER).status == 401
    first, second = (ask(access, "GET", link, BROWSER) for _ in range(2))
    assert (first.status, second.status) == (303, 401)
    assert "set-cookie" in first.headers
    assert "set-cookie" not in second.headers
    assert b"works once" in second.body
    clock.now += 61
    assert ask(access, "GET", unused, BROWSER).status == 401


def test_the_kept_token_is_no_start_link(tmp_path: Path) -> None:
    """In an address it would stay in the browser's history and sign in again and again. One that
    its user has set may stand there: nobody else prints or keeps it."""
    kept = KeptToken(tmp_path)
    access = Access(PORT, kept.read(), kept=kept)
    given = f"/?token={quote(kept.read())}"
    answers = [ask(access, "GET", given, BROWSER) for _ in range(2)]
    assert [(a.status, "set-cookie" in a.headers) for a in answers] == [(401, False)] * 2
    assert ask(access, "GET", access.start_path(), BROWSER).status == 303
    assert ask(access, "POST", sign_in.PATH, **form(kept.read())).status == 303
    assert ask(Access(PORT, TOKEN), "GET", f"/?token={TOKEN}", BROWSER).status == 303


def test_a_new_token_ends_links_cookies_and_the_old_token(tmp_path: Path) -> None:
    """At once, in a server that runs, whichever process made it."""
    kept = KeptToken(tmp_path)
    old = kept.read()
    access = Access(PORT, old, kept=kept)
    link = access.start_path()
    cookie = f"{access.cookie}={access.cookie_value}"
    headers = ({"host": HOST, "cookie": cookie}, {"host": HOST, "authorization": f"Bearer {old}"})
    assert [ask(access, "GET", "/x", each).status for each in headers] == [200, 200]
    new = KeptToken(tmp_path).renew()
    assert new != old
    assert [ask(access, "GET", "/x", each).status for each in headers] == [401, 401]
    assert ask(access, "GET", link, BROWSER).status == 401
    assert ask(access, "GET", "/x", {**BROWSER, "authorization": f"Bearer {new}"}).status == 200


def test_the_token_outlives_a_restart_and_is_private(tmp_path: Path) -> None:
    """Two servers one after the other take the same cookie; nobody else may read the file."""
    cookies, statuses = [], []
    for _ in range(2):
        running = Running(make_house(tmp_path))
        access = running.serving.access
        cookies.append(access.cookie_value)
        with contextlib.closing(running.connect()) as connection:
            pair = f"{access.cookie}={cookies[0]}"
            connection.request("GET", "/api/sessions", headers={"Cookie": pair})
            statuses.append(connection.getresponse().status)
        assert running.stop() == OK
    assert statuses == [200, 200]
    if os.name == "posix":
        path = tmp_path / TOKEN_FILE
        assert path.stat().st_mode & 0o077 == 0
        path.chmod(0o644)
        KeptToken(tmp_path).read()
        assert path.stat().st_mode & 0o077 == 0


def test_a_file_that_holds_no_token_is_one_sentence(tmp_path: Path) -> None:
    """It is not taken for an empty token, which everybody knows."""
    for text in ("", "short\n"):
        (tmp_path / TOKEN_FILE).write_text(text)
        with pytest.raises(ConfigError, match="holds no token"):
            KeptToken(tmp_path).read()
        assert "holds no token" in refused(make_house(tmp_path), "127.0.0.1", 0)


@pytest.mark.parametrize("where", ["0.0.0.0", "public"])
def test_a_short_token_stays_on_this_machine(where: str, tmp_path: Path) -> None:
    """Where others can reach the server, fifteen characters are refused, sixteen are enough."""
    host = "127.0.0.1" if where == "public" else where
    more = {"SEARCHLOOP_PUBLIC_URL": "https://chat.example.org"} if where == "public" else {}
    house = make_house(tmp_path / "a", SEARCHLOOP_TOKEN="t" * (SHORTEST - 1), **more)
    assert "shorter than 16" in refused(house, host, 0)
    good = make_house(tmp_path / "b", SEARCHLOOP_TOKEN="t" * SHORTEST, **more)
    assert Running(good, host).stop() == OK
    assert Running(make_house(tmp_path / "c", SEARCHLOOP_TOKEN="abc")).stop() == OK


@pytest.mark.parametrize("language", ["en", "de", "zh"])
def test_a_browser_gets_a_page_to_sign_in(language: str) -> None:
    """In the reader's language, labelled, without scripts or anything to load; a program gets JSON
    with the remedy at the same address."""
    headers = {**BROWSER, "accept-language": f"xx;q=0.9, {language}-XX, en;q=0.1"}
    answer = ask(Access(PORT, TOKEN), "GET", "/", headers)
    page, words = answer.body.decode(), words_of(language)
    assert answer.status == 401
    assert f'<html lang="{ {"zh": "zh-CN"}.get(language, language) }"' in page
    assert words["enter.title"] in page
    assert '<html lang="en"' in sign_in.page({"code": "no_token"}, "de;q=0, \xff")
    assert '<label for="token">' in page
    assert not re.search(r"<script|src=|https?://|url\(", page)
    policy = answer.headers["content-security-policy"]
    assert "form-action 'self'" in policy
    assert "unsafe" not in policy
    plain = ask(Access(PORT, TOKEN), "GET", "/", {"host": HOST})
    assert (plain.status, plain.error["code"]) == (401, "no_token")
    assert "Authorization: Bearer" in plain.error["remedy"]
    api = ask(Access(PORT, TOKEN), "GET", "/api/sessions", BROWSER)
    assert api.headers["content-type"] == "application/json"


def test_a_browser_is_told_any_refusal_by_a_page(tmp_path: Path) -> None:
    """In its language, with the way to the start; a program gets JSON at the same address."""

    async def asked(path: str, **head: str) -> Answer:
        async with living(make_house(tmp_path)) as app:
            return await request(app, "GET", path, allowed(**head))

    for path, host, words in (
        ("/no-such-page", HOST, "Das gibt es nicht (mehr)."),
        ("/", "evil.example<b>", "Unter diesem Namen ist der Server nicht zu erreichen."),
    ):
        browser = {**BROWSER, "host": host, "accept-language": "de"}
        told, plain = asyncio.run(asked(path, **browser)), asyncio.run(asked(path, host=host))
        assert told.status == plain.status >= 400
        assert told.headers["content-type"] == "text/html; charset=utf-8"
        page = told.body.decode()
        assert f"<h1>{words}" in page
        assert '<a href="/">' in page
        assert "<b>" not in page
        assert plain.error["remedy"]
    api = asyncio.run(asked("/api/no-such", **BROWSER))
    assert api.error["code"] == "not_found"


def test_the_form_signs_in() -> None:
    """By a form as browsers send it without JavaScript; a wrong token is told on the page, a form
    of another site is refused, and a signed-in browser is sent to the page."""
    access = Access(PORT, "pä ss&wörd of mine")
    good = ask(access, "POST", sign_in.PATH, **form(access.token))
    assert (good.status, good.headers["location"]) == (303, "/")
    cookie = good.headers["set-cookie"].partition(";")[0]
    assert ask(access, "GET", "/", {**BROWSER, "cookie": cookie}).status == 200
    assert ask(access, "GET", sign_in.PATH, {**BROWSER, "cookie": cookie}).status == 303
    wrong = ask(access, "POST", sign_in.PATH, **form("no"))
    assert (wrong.status, "set-cookie" in wrong.headers) == (401, False)
    assert b'role="alert"' in wrong.body
    foreign = form(access.token, origin="https://evil.example")
    assert ask(access, "POST", sign_in.PATH, **foreign).status == 403
    assert ask(access, "GET", sign_in.PATH, BROWSER).status == 401
    link = access.start_path().partition("token=")[2]
    assert ask(access, "POST", sign_in.PATH, **form(link)).status == 401  # links are for addresses


@pytest.mark.parametrize("way", ["bearer", "link", "form"])
def test_guesses_are_limited(way: str) -> None:
    """After ten wrong ones every further one is told to wait; the right token and whoever has a
    cookie always get in."""
    clock = Clock()
    access = Access(PORT, TOKEN, guesses=Guesses(clock))

    def attempt(token: str) -> Answer:
        if way == "form":
            return ask(access, "POST", sign_in.PATH, **form(token))
        if way == "link":
            return ask(access, "GET", f"/?token={token}", BROWSER)
        return ask(access, "GET", "/x", {"host": HOST, "authorization": f"Bearer {token}"})

    assert [attempt(f"guess{n}").status for n in range(12)] == [401] * 10 + [429] * 2
    refused = attempt("guess12")
    assert (refused.status, int(refused.headers["retry-after"])) == (429, 6)
    assert attempt(access.start_path()[8:] if way == "link" else TOKEN).status in (200, 303)
    cookie = {"host": HOST, "cookie": f"{access.cookie}={access.cookie_value}"}
    assert ask(access, "GET", "/x", cookie).status == 200
    clock.now += 6
    assert attempt("guess13").status == 401


@each_row(
    ("pieces", "status"),
    [
        ([b"a=&" * 350_000], 413),
        ([b"a=&" * 1366], 413),
        ([b"a=&" * 1000, b"a=&" * 1000], 413),
        ([b"token=" + TOKEN.encode()], 303),
        ([b"a=&" * 1300 + b"token=" + TOKEN.encode()], 303),
    ],
)
@pytest.mark.parametrize("told", [False, True])
def test_a_form_is_small(pieces: list[bytes], status: int, told: bool) -> None:
    """A form of more than 4 KiB is refused before anybody parses it, after wrong guesses too."""
    access = Access(PORT, TOKEN)
    for n in range(12):
        ask(access, "POST", sign_in.PATH, **form(f"guess{n}"))
    headers = dict(form("")["headers"])
    more: dict[str, Any] = {"body": b"".join(pieces)} if told else {"chunks": pieces}
    assert ask(access, "POST", sign_in.PATH, headers, **more).status == status


async def test_half_sent_forms_take_little_memory() -> None:
    """700 clients that never finish their form hold 4 KiB each, whatever they announce or send."""
    gate = Gate(None, Access(PORT, TOKEN))  # type: ignore[arg-type]
    head = form("")["headers"]
    parts = [[b"x" * 65_536] * 16, [bytes(bytearray(b"a=&" * 1365))]]
    ends = [False, True]

    def client(number: int) -> Any:
        more: Any = {"chunks": parts[number % 2], "stalls": ends[number % 2]}
        return request(gate, "POST", sign_in.PATH, head, **more)

    tracemalloc.start()
    try:
        tasks = [asyncio.create_task(client(n)) for n in range(700)]
        for _ in range(50):
            await asyncio.sleep(0)
        held = tracemalloc.get_traced_memory()[0]
        done = [task.result().status for task in tasks if task.done()]
    finally:
        tracemalloc.stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert done == [413] * 350
    assert held < 350 * 4096 + 16 * 2**20


def test_what_is_old_is_no_guess() -> None:
    """Neither a program that goes on with the token of yesterday nor a tab with an old cookie keeps
    its address waiting."""
    access = Access(PORT, TOKEN)
    for n in range(50):
        stale = {"host": HOST, "authorization": f"Bearer yesterday{n % 3}"}
        answer = ask(access, "GET", "/x", stale)
        assert (answer.status, answer.error["code"]) == (401, "bad_token")
        cookie = {**BROWSER, "cookie": f"{access.cookie}=old"}
        assert ask(access, "GET", "/x", cookie).status == 401
    assert ask(access, "POST", sign_in.PATH, **form(TOKEN)).status == 303


def test_guessers_do_not_fill_the_memory() -> None:
    """Addresses are forgotten, the one seen last is the last to go, and a network of IPv6 counts
    as one address."""
    guesses = Guesses(Clock())
    for number in range(10_050):
        guesses.wrong(f"10.0.{number >> 8}.{number & 255}", b"no")
    assert len(guesses._left) == 10_000
    access = Access(PORT, TOKEN, guesses=guesses)
    for n in range(10):
        scope = {"client": (f"2001:db8::{n}", 1), "headers": ()}
        assert access.guess(b"no%d" % n, scope, {}) == 0
    assert access.guess(b"no", {"client": ("2001:db8::ffff", 1), "headers": ()}, {}) == 6


def test_behind_our_proxy_the_guesser_is_whom_the_proxy_saw() -> None:
    """One guesser does not lock out everybody behind the same proxy; and nobody chooses for
    themselves who is counted, unless they are the proxy."""
    people = People.of({"SEARCHLOOP_USER_HEADER": "X-User"})
    access = Access(PORT, TOKEN, people=people)
    proxied = {"client": ("127.0.0.1", 1), "headers": ()}
    for n in range(10):
        access.guess(b"no%d" % n, proxied, {b"x-forwarded-for": b"1.1.1.%d, 7.7.7.7" % n})
    assert access.guess(b"no", proxied, {b"x-forwarded-for": b"7.7.7.7"}) == 6
    assert access.guess(b"no", proxied, {b"x-forwarded-for": b"7.7.7.8"}) == 0
    for seen in (b"7.7.7.7:52144", b"7.7.7.7, 127.0.0.1", b"7.7.7.7, [::1]:99"):  # two proxies
        assert access.guess(b"no", proxied, {b"x-forwarded-for": seen}) == 6
    assert access.guess(b"no", proxied, {b"x-forwarded-for": b"7.7.7.7, unknown"}) == 0
    direct = {"client": ("9.9.9.9", 1), "headers": ()}
    for n in range(10):
        access.guess(b"no%d" % n, direct, {b"x-forwarded-for": b"1.1.1.%d" % n})
    assert access.guess(b"no", direct, {}) == 6


BROWSER_PROGRAM = """#!/bin/sh
echo "$@" >> "$SEARCHLOOP_HOME/../opened"
"""


def test_no_command_line_or_log_holds_the_token(tmp_path: Path) -> None:
    """`serve --open` gives the browser a code that works once, and prints another; the token is in
    the file alone: not in any output, not in a command line, not in an address or a header that a
    browser keeps."""
    program = tmp_path / "browser"
    program.write_text(BROWSER_PROGRAM)
    program.chmod(0o700)
    home = tmp_path / "home"
    env = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
        "SEARCHLOOP_HOME": str(home),
        "SEARCHLOOP_LOG": "text,debug",
        "DISPLAY": ":0",
        "BROWSER": f"{program} %s",
    }
    command = [sys.executable, "-m", "searchloop.cli", "serve", "--port", "0", "--open"]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, text=True, cwd=tmp_path, env=env, **pipes) as process:
        try:
            first = process.stdout.readline()
            token = (home / TOKEN_FILE).read_text().strip()
            lines = Path(f"/proc/{process.pid}/cmdline").read_text()
            told = tmp_path / "opened"
            until(lambda: told.exists() and told.read_text().endswith("\n"))
            opened = told.read_text().split()[0]
            for address in (opened, re.search(r"http\S+", first)[0]):  # type: ignore[index]
                assert "token=" in address
                statuses = [status_of(address) for _ in range(2)]
                assert statuses == [303, 401]
        finally:
            process.terminate()
        rest = process.stdout.read()
    for text in (first, rest, lines, opened):
        assert token not in text


def status_of(address: str) -> int:
    """The status of a GET, redirects not followed."""
    _, _, host, target = address.split("/", 3)
    with contextlib.closing(http.client.HTTPConnection(host, timeout=60)) as connection:
        connection.request("GET", f"/{target}")
        return connection.getresponse().status


async def test_a_name_is_believed_from_the_proxy_alone() -> None:
    """From its address; exactly one; and the token's holder is nobody's name."""
    people = People.of(
        {
            "SEARCHLOOP_USER_HEADER": "X-User",
            "SEARCHLOOP_TRUSTED_PROXIES": "10.0.0.0/24, ::1",
            "SEARCHLOOP_ADMINS": "anna@example.org, b",
        }
    )
    assert people
    access = Access(PORT, TOKEN, people=people)
    head = {b"x-user": b"anna@example.org"}
    for client, name in (
        ("10.0.0.7", "anna@example.org"),
        ("::ffff:10.0.0.7", "anna@example.org"),
        ("::1", "anna@example.org"),
        ("10.0.1.7", None),
        ("127.0.0.1", None),
        ("", None),
    ):
        who = await access.admit({"client": (client, 1), "headers": ()}, head)
        assert getattr(who, "name", None) == name
    proxied = {"client": ("10.0.0.7", 1), "headers": ()}
    for value in (b"", b"  ", b"a\x00b", b"\xff", b"x" * 201, b"a\nb"):
        assert await access.admit(proxied, {b"x-user": value}) is None
    bob = await access.admit(proxied, {b"x-user": "Bóß".encode()})
    assert bob is not None
    assert not isinstance(bob, int)
    assert (bob.name, bob.admin) == ("Bóß", False)


def test_two_names_in_one_request_are_refused() -> None:
    """A proxy that adds its header to a client's instead of replacing it lets nobody be chosen."""
    access = Access(PORT, TOKEN, people=People.of({"SEARCHLOOP_USER_HEADER": "X-User"}))
    head = {"host": HOST, "x-user": "anna"}
    assert ask(access, "GET", "/", head, twice=("x-user", "bob")).status == 400
