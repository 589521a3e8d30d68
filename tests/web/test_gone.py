"""Gone means gone: what a deleted or temporary chat brought stands nowhere afterwards.

A model of our own searches, reads a page and changes a file for a chat; each word that only this
chat knows is a canary. Then every byte of SEARCHLOOP_HOME is searched, and every row of PostgreSQL:
write-ahead logs, free pages, what is compressed. A new place where chats leave something needs a
canary of its own in `CANARIES` and no other change here.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.fakes import FakeServer, Received, Reply, json_reply
from tests.postgres import Postgres
from tests.search_backend.hostile import HostileServer, answer, serving
from tests.waiting import until
from tests.web.faces import called, chunk, listing, said
from tests.web.whole_server import WholeServer

NAMES = (
    *("question", "answer", "thought", "query", "title", "snippet", "host", "path", "text"),
    *("rest", "file", "before", "after", "argument"),
)


def canaries(chat: str) -> dict[str, str]:
    """A word for each thing that a chat brings. Only its last letters are looked for, as an index
    of words leaves out the first ones where the word before begins in the same way."""
    return {
        name: "k" + hashlib.sha256(f"{chat} {name}".encode()).hexdigest()[:16] for name in NAMES
    }


def dresses(word: str) -> Iterator[bytes]:
    """How a word may be written."""
    tail = word[-10:]
    yield tail.encode()
    yield tail.encode("utf-16-le")
    for skip in range(3):
        coded = base64.b64encode(b"\0" * skip + word.encode())
        yield coded[4 if skip else 0 : -4]


def unpacked(data: bytes) -> Iterator[bytes]:
    """The bytes, and what is compressed in them anywhere, as far as it can be read."""
    yield data
    at = data.find(b"x\x01")
    while at >= 0:
        for end in (len(data), at + 512):  # a page of a database may end within it
            reader = zlib.decompressobj()
            try:
                yield reader.decompress(data[at:end])
                break
            except zlib.error:
                continue
        at = data.find(b"x\x01", at + 1)


def rows(server: Postgres | None) -> dict[str, bytes]:
    """Every row of every table, as text, but for the stores of the tests before."""
    if server is None:
        return {}
    stores = "FROM pg_namespace WHERE nspname ~ '^t[0-9]+$'"
    tables = server.tell(
        "SELECT table_schema || '.' || table_name FROM information_schema.tables"
        " WHERE table_type = 'BASE TABLE' AND (table_schema !~ '^t[0-9]+$'"
        f" OR table_schema = (SELECT nspname {stores} ORDER BY oid DESC LIMIT 1))"
    )
    return {
        table: "\n".join(row[0] for row in server.tell(f"SELECT t::text FROM {table} t")).encode()
        for (table,) in tables
    }


def found(home: Path, words: dict[str, str], server: Postgres | None = None) -> set[str]:
    """`canary in file` for each that stands there in any dress."""
    files = {p.name: p.read_bytes() for p in home.rglob("*") if p.is_file()} | rows(server)
    seen = set()
    for place, data in files.items():
        for piece in unpacked(data):
            seen |= {
                f"{name} in {place}"
                for name, word in words.items()
                if any(dress in piece for dress in dresses(word))
            }
    return seen


def names(seen: set[str]) -> set[str]:
    """The canaries alone."""
    return {each.split()[0] for each in seen}


def model(chats: Callable[[], Sequence[dict[str, str]]]) -> Callable[[Received], Reply]:
    """Searches, opens what it found, changes a file, answers; the question says for which chat."""

    def reply(received: Received) -> Reply:
        if received.path.startswith("/search"):
            words = next(w for w in chats() if w["query"] in received.path)
            hits = [
                {"title": words["title"], "url": address(words), "content": "It is about tea."},
                {"title": "Another", "url": "https://b.example/", "content": words["snippet"]},
            ]
            return json_reply({"results": hits})
        if models := listing(received):
            return models
        asked = received.json["messages"]
        words = next(w for w in chats() if w["question"] in str(asked))
        file = {"path": f"{words['file']}.txt", "old": words["before"], "new": words["after"]}
        steps = [
            ("web_search", {"query": words["query"]}),
            ("open_page", {"url": address(words)}),
            ("replace_in_file", file),
            ("open_page", {"url": address(words), "find": words["argument"]}),
        ]
        done = sum(message["role"] == "tool" for message in asked)
        if done == len(steps):
            thought = chunk(reasoning_content=words["thought"])
            return Reply([thought, *said(f"{words['answer']} [1]").pieces])
        return called(steps[done][0], **steps[done][1])

    return reply


def address(words: dict[str, str]) -> str:
    """Of the page."""
    return f"http://{words['host']}.example/{words['path']}"


class House:
    """A server, what it asks, and the chats that it has had."""

    def __init__(self, server: WholeServer, pages: HostileServer, folder: Path) -> None:
        self._server, self._pages, self._folder = server, pages, folder
        self.ask = server.told
        self.end = server.end

    def chat(self, words: dict[str, str], **settings: Any) -> str:
        """Asks one question in a new chat, to the end of the answer; returns the chat's id."""
        paragraph = f"<p>{words['text']} is about the harbour and how it was built of stone. "
        long = "".join(f"<p>Stage {n} of it took {n * 7} years and a word. " for n in range(300))
        page = f"<title>{words['title']}</title>{paragraph}{long}<p>{words['rest']}".encode()
        self._pages.routes["/" + words["path"]] = answer(page, "Cache-Control: max-age=9000")
        (self._folder / f"{words['file']}.txt").write_text(words["before"])
        wanted = {"model": "openai-chat:tin", "mode": "agent", "search": "local", **settings}
        session = self.ask("POST", "/api/sessions", {**wanted, "workspace": str(self._folder)})[
            "id"
        ]
        self.ask("POST", f"/api/sessions/{session}/messages", {"text": words["question"]})
        until(lambda: not self.ask("GET", f"/api/sessions/{session}")["running"])
        events = self.ask("GET", f"/api/sessions/{session}/export?format=json")
        assert words["answer"] in json.dumps(events), events
        return str(session)

    def delete(self, session: str) -> None:
        """Deletes a chat."""
        self.ask("DELETE", f"/api/sessions/{session}")


@contextmanager
def house(tmp_path: Path, chats: Sequence[dict[str, str]], **settings: str) -> Iterator[House]:
    """A server with an empty home, a search engine, a model, and pages."""
    home, folder = tmp_path / "home", tmp_path / "folder"
    home.mkdir()
    folder.mkdir()
    rules = [{"action": "allow", "effect": "write"}, {"action": "allow", "effect": "network"}]
    policy = {"private_and_untrusted": "allow", "rules": rules}
    (home / "policy.json").write_text(json.dumps(policy))
    with FakeServer(model(lambda: chats)) as elsewhere, serving({}) as pages:
        own = {
            "OPENAI_CHAT_BASE_URL": f"{elsewhere.url}/v1",
            "SEARXNG_URL": elsewhere.url,
            "SEARCH_ENGINES": "searxng",
            **settings,
        }
        with WholeServer(home, pages.port, settings=own) as server:
            yield House(server, pages, folder)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.integration)])
def database(request: pytest.FixtureRequest) -> Postgres | None:
    """PostgreSQL, or None for the file."""
    return request.getfixturevalue("postgres") if request.param == "postgres" else None


def test_a_deleted_chat_leaves_nothing(tmp_path: Path, database: Postgres | None) -> None:
    """While it is there all is found; afterwards nothing is, with the server up and ended. What
    another chat brought stays."""
    gone, other = canaries("gone"), canaries("other")
    own = {} if database is None else {"SEARCHLOOP_DATABASE_URL": database.url()}
    home = tmp_path / "home"
    with house(tmp_path, [gone, other], **own) as server:
        first, second = server.chat(gone), server.chat(other)
        before = found(home, gone, database)
        assert names(before) == set(NAMES), set(NAMES) - names(before)
        assert "text in library.sqlite3" in before
        if database is not None:
            database.tell("ANALYZE")  # as its own housekeeping does now and then
        server.delete(first)
        assert found(home, gone, database) == set()
        assert names(found(home, other, database)) == set(NAMES)
        server.delete(second)
        assert server.end() == 0
        assert found(home, {**gone, **other}, database) == set()


def test_temporary_chats_and_pages_of_two_chats(tmp_path: Path) -> None:
    """A temporary chat is in no library, not even while it lasts. A page of two chats
    stays there until both are gone; the second chat got it from there."""
    words, home = canaries("temporary"), tmp_path / "home"
    one, two = canaries("one"), canaries("two")
    two |= {name: one[name] for name in ("query", "title", "host", "path", "text", "rest")}
    shared = {name: one[name] for name in ("host", "text", "rest", "query")}
    with house(tmp_path, [words, one, two]) as server:
        session = server.chat(words, temporary=True)
        places = {each.split(" in ")[1] for each in found(home, words)}
        assert not {place for place in places if place.startswith("library")}
        server.delete(session)
        assert found(home, words) == set()
        first, second = server.chat(one), server.chat(two)
        server.delete(first)
        left = {each.removesuffix("-wal") for each in found(home, shared)}
        assert "text in library.sqlite3" in left
        server.delete(second)
        assert found(home, one | two) == set()


def test_the_search_finds_every_dress() -> None:
    """Plain, wide, in base64 at any offset, compressed."""
    word = canaries("x")["text"]
    coded = [base64.b64encode(f"{'y' * n}{word}zz".encode()) for n in range(3)]
    packed = b"before" + zlib.compress(f"{word} {quote(word)}".encode(), 1)
    for data in (word.encode(), word.encode("utf-16-le"), *coded, packed):
        assert any(dress in piece for piece in unpacked(data) for dress in dresses(word)), data
