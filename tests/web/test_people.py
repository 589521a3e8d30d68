"""Several people on one server: whatever they do, none of them sees anything of another.

The requests are made from /api/openapi.json, so a new route is asked without being named here.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from searchloop.agent.errors import ConfigError
from searchloop.agent.settings import Environment
from searchloop.compose import open_services
from searchloop.web.api.openapi import document
from searchloop.web.app import WebApp
from searchloop.web.gate.access import Access, People
from tests.fakes import FakeServer, json_reply
from tests.ports import closed_address
from tests.waiting import eventually
from tests.web.house import HOST, PORT, TOKEN, Answer, lived, request

HEADER = "x-user"
ANNA, BOB, ADMIN = "anna@example.org", "Bob Ünal", "the boss"
WORDS = {ANNA: "annaqz", BOB: "bobqz"}  # how the words of each begin
# Answers that need a model which calls tools, changed files, a server that answers or a body that
# is no JSON; other tests lead to them.
RARE = {
    *("post /api/sessions/{id}/approvals/{call_id}", "post /api/sessions/{id}/undo"),
    *("post /api/sessions/{id}/plans/{plan}/run", "post /api/sessions/{id}/plans"),
    *("post /api/sessions/{id}/check", "patch /api/sessions/{id}/summary"),
    "post /api/mcp/{name}/tools/{tool}/approve",
    *("post /api/providers/{name}/test", "post /api/sessions/import"),
    *("get /api/mermaid", "post /api/prompts", "post /api/templates"),
    "get /api/sessions/{id}/attachments/{digest}/pages/{page}",
}


@asynccontextmanager
async def server(home: Path, store: Path | str, **env: str) -> AsyncIterator[WebApp]:
    """The real application with nothing outside it, between its start and its end."""
    flags = {
        "SEARCHLOOP_HOME": str(home),
        "SEARCHLOOP_OFFLINE": "1",
        "SEARCHLOOP_USER_HEADER": HEADER,
        "SEARCHLOOP_ADMINS": ADMIN,
        "OLLAMA_HOST": closed_address(),
        **({} if isinstance(store, Path) else {"SEARCHLOOP_DATABASE_URL": store}),
        **env,
    }
    services = open_services(Environment({"flag": flags}))
    app = WebApp(services, Access(PORT, TOKEN, people=People.of(flags)))
    try:
        async with lived(app):
            yield app
    finally:
        services.close()


async def ask(app: WebApp, person: str, method: str, target: str, body: Any = None) -> Answer:
    """A request as the proxy passes it on; of a stream the first piece."""
    headers = {"host": HOST, HEADER: person.encode().decode("latin-1")}
    return await request(app, method, target, headers, body, enough=lambda body: True)


def folders(home: Path) -> dict[str, Path]:
    """The folder of each person."""
    return {path.read_text()[:-1]: path.parent for path in home.glob("people/*/name")}


@dataclass
class Belongings:
    """What a person has: it fills the places of a request by their names."""

    word: str
    folder: Path
    note: str
    session: str = ""
    project: str = ""

    def value(self, place: str, schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Any:
        """Something that may stand in a place of this name and form."""
        if "$ref" in schema:
            schema = schemas[schema["$ref"].rpartition("/")[2]]
        kinds = schema.get("type", "string")
        kind = kinds[0] if isinstance(kinds, list) else kinds
        known = {
            "id": self.session, "ids": self.session, "project": self.project,
            "digest": sha256(self.note.encode()).hexdigest(), "turn": "1",
            "path": str(self.folder), "workspace": str(self.folder), "url": "library://notes/note.md",
            "model": "builtin:extractive", "q": "plan", "query": "plan of the harbour",
            "folders": "notes", "config": '{"mcpServers": {"x": {"url": "http://h.example"}}}',
            "data": b64encode(b"A file of whoever asks.").decode(), "tags": "tag",
        }  # fmt: skip
        if place == "settings":
            return {"SEARCHLOOP_LIMITS": "steps=3"}
        if "enum" in schema:
            return schema["enum"][0]
        if kind == "array":
            return [self.value(place, schema.get("items", {}), schemas)]
        if kind == "object":
            fields = schema.get("properties", {})
            return {f: self.value(f, fields[f], schemas) for f in schema.get("required", ())}
        return {"boolean": True, "integer": 2, "number": 2}.get(kind, known.get(place, "x"))


@dataclass
class Walk:
    """Requests to every route, which name the things of somebody."""

    app: WebApp
    described: Mapping[str, Any]
    of: dict[str, Belongings]

    @classmethod
    async def begun(cls, app: WebApp, home: Path) -> Walk:
        """Each person has a folder with a document, and a thing of each kind only they know."""
        walk = cls(app, document(), {})
        for name, word in WORDS.items():
            assert (await ask(app, name, "GET", "/api/me")).data["name"] == name
            place = folders(home)[name]
            own = Belongings(word, place / "files" / "notes", f"The {word}plan in a file.")
            walk.of[name] = own
            own.folder.mkdir(parents=True)
            (own.folder / "note.md").write_text(f"# {word}doc\n\nThe {word}plan of the harbour.\n")
            servers = {f"{word}thing": {"url": "http://127.0.0.1:1/mcp", "disabled": True}}
            (place / "data" / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
            file = {"name": f"{word}.txt", "data": b64encode(own.note.encode()).decode()}
            template = {"command": f"{word}thing", "content": f"The {word}plan"}
            for kind, body in (
                ("sessions", {"search": "off"}),
                ("projects", {"name": f"{word}project", "instructions": f"Tell the {word}plan."}),
                ("agents", {"name": f"{word}thing", "system": f"Tell the {word}plan."}),
                ("programs", {"name": f"{word}thing"}),
                ("templates", {"templates": [template]}),
                ("library", {"path": str(own.folder)}),
            ):
                made = await ask(app, name, "POST", f"/api/{kind}", body)
                assert made.status < 300, made.body
                own.session = made.data["id"] if kind == "sessions" else own.session
                own.project = made.data["id"] if kind == "projects" else own.project
            said = {"text": f"Where is the {word}plan?", "attachments": [file]}
            chat, project = f"/api/sessions/{own.session}", f"/api/projects/{own.project}"
            assert (await ask(app, name, "POST", f"{chat}/messages", said)).status == 202
            assert (await ask(app, name, "POST", f"{project}/files", file)).status == 201
            await walk.settled()
        return walk

    async def settled(self) -> None:
        """Lets answers end."""
        runners = [tenant.services.runner for tenant in self.app._tenants.values()]
        await eventually(lambda: not any(each._tasks or each._starting for each in runners))

    def is_operators(self, route: str) -> bool:
        """Tells a route that concerns the whole server."""
        method, path = route.split(" ")
        return "x-whose" in self.described["paths"][path][method]

    def requests(self, whose: Belongings) -> Iterator[tuple[str, str, str, Any]]:
        """(route, method, target, body): each route with what it needs, and with each thing that it
        may be given besides. Deletions come last."""
        schemas = self.described["components"]["schemas"]
        routes = [(m, p, o) for p, ms in self.described["paths"].items() for m, o in ms.items()]
        for method, path, operation in sorted(routes, key=lambda r: (r[0] == "delete", -len(r[1]))):
            target, queries = path, [""]
            for each in operation["parameters"]:
                name, shape = each["name"], each["schema"]
                if each["in"] == "query":
                    queries.append(f"?{name}={quote(str(whose.value(name, shape, schemas)))}")
                    continue
                named = name in ("name", "program")
                value = f"{whose.word}thing" if named else whose.value(name, {}, schemas)
                if path.startswith(("/static/", "/api/keys/")):
                    value = "BRAVE_API_KEY" if "keys" in path else "app.js"
                target = target.replace(f"{{{name}}}", quote(value, safe=""))
            bodies: list[Any] = [None]
            if content := operation.get("requestBody"):
                ref = content["content"]["application/json"]["schema"]["$ref"]
                schema = schemas[ref.rpartition("/")[2]]
                least = whose.value("", schema, schemas)
                more = {f: s for f, s in schema.get("properties", {}).items() if f not in least}
                bodies = [least, *({**least, f: whose.value(f, more[f], schemas)} for f in more)]
            for query, body in [(q, bodies[0]) for q in queries] + [("", b) for b in bodies[1:]]:
                yield f"{method} {path}", method.upper(), target + query, body


async def test_nobody_sees_anything_of_another(tmp_path: Path, store: Path | str) -> None:
    """Bob asks every route for Anna's things, by their names and with each field that may name one:
    no answer holds a word, an id or a folder of hers that he did not write, and whatever names a
    chat or project of hers is refused. Afterwards each route does for Anna what it is for, so
    nothing of hers was lost; an administrator sees counts and none of it."""
    home = tmp_path / "home"
    async with server(home, store) as app:
        walk = await Walk.begun(app, home)
        hers, his = walk.of[ANNA], walk.of[BOB]
        marks = re.compile(rf"{hers.word}\w*|{hers.session}|{hers.project}|{hers.folder}")
        for route, method, target, body in walk.requests(hers):
            answer = await ask(app, BOB, method, target, body)
            sent = target + json.dumps(body)
            text = answer.body.decode("utf-8", "replace") + str(answer.headers)
            seen = {mark for mark in marks.findall(text) if mark not in sent}
            assert not seen, f"{route} {sent}: {text[:500]}"
            assert answer.status not in (500, 0), f"{route} {sent}: {text[:500]}"
            if hers.session in sent or hers.project in sent:
                assert answer.status >= 400 or "?" in target, f"{route} {sent}"
            await walk.settled()
        worked, every = set[str](), set[str]()
        for route, method, target, body in walk.requests(hers):
            every.add(route)
            if route not in worked:
                answer = await ask(app, ANNA, method, target, body)
                assert answer.status not in (500, 0), f"{route}: {answer.body!r}"
                worked |= {route} if answer.status < 300 else set()
                await walk.settled()
        assert {route for route in every - worked - RARE if not walk.is_operators(route)} == set()
        uses = await ask(app, ADMIN, "GET", "/api/usage")
        assert {use["person"] for use in uses.data["uses"]} <= set(WORDS)
        listed = (await ask(app, ADMIN, "GET", "/api/sessions")).body
        assert not [
            w for w in WORDS.values() if w in (uses.body + listed).decode().replace(ANNA, "")
        ]
    for mine, other in ((hers, his), (his, hers)):
        files = [p for p in mine.folder.parents[1].rglob("*") if p.is_file()]
        assert not [p for p in files if f"{other.word}plan".encode() in p.read_bytes()]


async def test_each_person_has_their_own_everything(tmp_path: Path, store: Path | str) -> None:
    """Chats, library, keys, settings, agents, policy: what Anna sets, Bob and the holder of the
    token do not have; and hers are there again after a restart."""

    async def sets(app: WebApp) -> None:
        for method, target, body in (
            ("POST", "/api/sessions", {}),
            ("PUT", "/api/keys/BRAVE_API_KEY", {"value": "annas-key"}),
            ("PATCH", "/api/settings", {"settings": {"SEARCHLOOP_LIMITS": "steps=3"}}),
            ("POST", "/api/agents", {"name": "annas"}),
            ("PUT", "/api/policy", {"review_queries": True}),
        ):
            answer = await ask(app, ANNA, method, target, body)
            assert answer.status < 300, answer.body

    async def state(app: WebApp, person: str) -> tuple[Any, ...]:
        get = [
            (await ask(app, person, "GET", f"/api/{name}")).data
            for name in ("sessions", "keys", "settings", "agents", "policy")
        ]
        limits = next(s for s in get[2]["settings"] if s["name"] == "SEARCHLOOP_LIMITS")
        return (
            len(get[0]["sessions"]),
            sum(key["set"] for key in get[1]["keys"]),
            limits["value"],
            sum(agent["name"] == "annas" for agent in get[3]["agents"]),
            get[4].get("review_queries"),
        )

    async with server(tmp_path / "home", store) as app:
        nothing = await state(app, BOB)
        await sets(app)
        assert await state(app, BOB) == await state(app, ADMIN) == nothing
        token = {"host": HOST, "authorization": f"Bearer {TOKEN}"}
        own = await request(app, "GET", "/api/sessions", token)
        assert own.data == {"sessions": [], "projects": [], "archived": 0}
        assert await state(app, ANNA) == (1, 1, "steps=3", 1, True)
    async with server(tmp_path / "home", store) as app:
        assert await state(app, ANNA) == (1, 1, "steps=3", 1, True)
        assert (await state(app, BOB))[0] == 0


async def test_the_server_itself_is_its_operators(tmp_path: Path) -> None:
    """Programs, models on the machine, the token and the numbers are not for people; an
    administrator sees use; the holder of the token may do all of it."""
    async with server(tmp_path / "home", tmp_path / "s") as app:
        server_wide = [
            ("POST", "/api/mcp", {"config": '{"mcpServers": {"x": {"command": "id"}}}'}),
            ("POST", "/api/models/pull", {"model": "m:x"}),
            ("POST", "/api/new-token", {}),
        ]
        for person in (BOB, ADMIN):
            for method, target, body in server_wide:
                answer = await ask(app, person, method, target, body)
                assert (answer.status, answer.error["code"]) == (403, "operators_only"), target
        statuses = [(await ask(app, who, "GET", "/api/usage")).status for who in (BOB, ADMIN)]
        assert statuses == [403, 200]
        assert [(await ask(app, who, "GET", "/metrics")).status for who in (BOB, ADMIN)] == [
            *(403, 200)
        ]
        token = {"host": HOST, "authorization": f"Bearer {TOKEN}"}
        assert (await request(app, "GET", "/api/usage", token)).status == 200
        planned = await request(app, "POST", "/api/mcp", token, server_wide[0][2])
        assert planned.status == 200


async def test_what_a_person_s_programs_use_is_counted(tmp_path: Path) -> None:
    """An answer at /v1 is in no chat, yet in what the person used that day."""
    async with server(tmp_path / "home", tmp_path / "s") as app:
        asked = {"model": "builtin:extractive", "messages": [{"role": "user", "content": "Hi?"}]}
        await ask(app, ANNA, "POST", "/v1/chat/completions", asked)
        (use,) = (await ask(app, ADMIN, "GET", "/api/usage")).data["uses"]
        assert (use["person"], use["answers"]) == (ANNA, 1)
        assert (await ask(app, ANNA, "GET", "/api/sessions")).data["sessions"] == []


@pytest.mark.parametrize("kind", ["library", "workspace"])
async def test_folders_of_the_machine_are_not_theirs(kind: str, tmp_path: Path) -> None:
    """A person's folders lie in their own one, whatever a link in it says; the server's data, its
    system and other people's folders are refused."""
    async with server(tmp_path / "home", tmp_path / "s") as app:
        for name in WORDS:
            await ask(app, name, "GET", "/api/me")
        home = tmp_path / "home"
        places = folders(home)
        mine, hers = places[BOB] / "files", places[ANNA] / "files"
        (hers / "note.md").write_text("hers")
        (mine / "link").symlink_to(hers)
        (mine / "own").mkdir()
        wrong = [hers, mine / "link", home, places[BOB] / "data", Path("/etc"), mine / ".." / ".."]
        for path, fine in [*((p, False) for p in wrong), (mine / "own", True)]:
            if kind == "library":
                answer = await ask(app, BOB, "POST", "/api/library", {"path": str(path)})
            else:
                answer = await ask(app, BOB, "POST", "/api/sessions", {"workspace": str(path)})
            assert (answer.status < 300) == fine, path


async def test_a_run_of_a_person_goes_on_after_a_crash(tmp_path: Path, store: Path | str) -> None:
    """Whoever has an unfinished answer gets it resumed at the start, before they come back."""
    home = tmp_path / "home"
    async with server(home, store) as app:
        made = (await ask(app, ANNA, "POST", "/api/sessions", {})).data
        log = app._tenants[ANNA].services.log
        lease = log.leases.claim(made["id"], "r1", "nowhere/1/dead", {})
        started = {"run_id": "r1", "model": "builtin:extractive", "mode": "ask", "search": "off"}
        question = [
            ("user_message", {"text": "hi"}),
            ("run_started", {**started, "search_path": "off"}),
        ]
        log.append(made["id"], question, fence=lease.fence)
        log.leases.hand_over(lease)  # as after the seconds in which its holder says nothing
    async with server(home, store) as app:
        running = app._services.log.people_running
        await eventually(lambda: ANNA in app._tenants and not running())
        [session] = (await ask(app, ANNA, "GET", "/api/sessions")).data["sessions"]
        assert app._tenants[ANNA].services.log.last_event(session["id"]).type == "run_finished"


async def test_a_tenant_nobody_uses_is_closed(tmp_path: Path) -> None:
    """Its memory is freed, and the next request opens it again."""
    async with server(tmp_path / "home", tmp_path / "s") as app:
        await ask(app, ANNA, "POST", "/api/sessions", {})
        tenant = app._tenants[ANNA]
        assert not tenant.idle()
        tenant._left -= 10_000
        assert tenant.idle()
        await app._close_idle()
        assert ANNA not in app._tenants
        assert len((await ask(app, ANNA, "GET", "/api/sessions")).data["sessions"]) == 1


async def test_a_search_is_cached_for_one_person(tmp_path: Path) -> None:
    """Whoever searches the same again gets the kept answer; another person's search is asked anew,
    so nobody learns from a quick answer what others searched."""
    rows = [{"url": "https://a.example/", "title": "A", "content": "x"}]
    with FakeServer(lambda _: json_reply({"results": rows})) as engine:
        env = {"SEARCHLOOP_OFFLINE": "", "SEARXNG_URL": engine.url, "SEARCH_ENGINES": "searxng"}
        async with server(tmp_path / "home", tmp_path / "s", **env) as app:
            cached = []
            for person in (ANNA, ANNA, BOB):
                answer = await ask(app, person, "POST", "/api/web-search", {"query": "tea"})
                cached.append(answer.data.get("cached", False))
            assert (cached, len(engine.requests)) == ([False, True, False], 2)


def test_one_cache_for_all_is_refused(tmp_path: Path) -> None:
    """A search backend elsewhere knows no people, so the start says what to unset."""
    flags = {"SEARCHLOOP_HOME": str(tmp_path), "SEARCH_BACKEND_URL": "http://127.0.0.1:3002"}
    services = open_services(Environment({"flag": flags}))
    with pytest.raises(ConfigError, match="one library and one cache"):
        WebApp(services, Access(PORT, TOKEN, people=People.of({"SEARCHLOOP_USER_HEADER": "X"})))
    services.close()


def test_a_person_has_what_is_for_all_and_their_own_before_it(tmp_path: Path) -> None:
    """Keys and settings that the server is started with are there for all; those of one's own are
    used instead. The server's log knows the keys of people, to take them out."""
    everybodys = {"BRAVE_API_KEY": "for all", "SEARCHLOOP_OFFLINE": "1"}
    shared = {"SEARCHLOOP_MODEL": "m:all", "SEARCHLOOP_SEARCH": "auto"}
    flags = {"SEARCHLOOP_HOME": str(tmp_path)}
    env = Environment({"flag": flags, "environment": everybodys, "config.toml": shared})
    services = open_services(env)
    anna = services.of_person("anna")
    (anna.settings.home / "config.toml").write_text('SEARCHLOOP_SEARCH = "local"\n')
    anna = services.of_person("anna")
    own = anna.settings
    assert (own.model, own.search, own.offline) == ("m:all", "local", True)
    mine = own.env
    assert (mine["BRAVE_API_KEY"], "annas-own-key" in services.secrets()) == ("for all", False)
    assert mine.key_store
    mine.key_store.save("BRAVE_API_KEY", "annas-own-key", (), mine, file=True)
    assert (mine["BRAVE_API_KEY"], env["BRAVE_API_KEY"]) == ("annas-own-key", "for all")
    assert "annas-own-key" in services.secrets()
    services.close()
