"""Several people on one server: whatever they do, none of them sees anything of another.

The steps are made from /api/openapi.json, so a new route is walked without being named here.
"""

from __future__ import annotations

import asyncio
import json
import re
from base64 import b64encode
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import pytest

from searchloop.agent.errors import ConfigError
from searchloop.agent.settings import Environment, Settings
from searchloop.compose import open_services
from searchloop.web.api.openapi import document
from searchloop.web.app import WebApp
from searchloop.web.gate.access import Access, People
from tests.fakes import FakeServer, json_reply
from tests.ports import closed_address
from tests.web.house import HOST, PORT, TOKEN, Answer, lived, request

HEADER = "x-user"
PEOPLE = {"anna@example.org": "annaqz", "Bob Ünal": "bobqz"}  # a name, and how their words begin
ADMIN = "the boss"
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
NOTE = "The {}plan in a file."
SERVERS = 8  # MCP servers that the operator gave to each person


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


class Walk:
    """Steps of two people by turns, made from the description of the API."""

    def __init__(self, app: WebApp, home: Path, seed: int) -> None:
        self.app, self.home, self.random = app, home, Random(seed)
        described = document()
        self.schemas = described["components"]["schemas"]
        self.operations = [
            (method, path, operation)
            for path, methods in described["paths"].items()
            for method, operation in methods.items()
        ]
        self.sessions: dict[str, list[str]] = {name: [] for name in PEOPLE}
        self.projects: dict[str, list[str]] = {name: [] for name in PEOPLE}
        self.seen: dict[str, set[str]] = {}  # values of fields, whoever sent or got them
        # Words of the other that a person wrote in a request of their own: an attacker who guesses.
        self.told: dict[str, set[str]] = {name: set() for name in PEOPLE}
        self.called: Counter[tuple[str, str]] = Counter()
        self.done: Counter[str] = Counter()
        self.programs = ["none"]
        self.folders: dict[str, str] = {}
        self.digests: list[str] = []

    async def begin(self) -> None:
        """Each person gets a folder with a document, and says something that only they know."""
        for name, word in PEOPLE.items():
            assert (await ask(self.app, name, "GET", "/api/me")).data["name"] == name
            place = next(
                p.parent for p in self.home.glob("people/*/name") if p.read_text()[:-1] == name
            )
            folder = place / "files" / "notes"
            folder.mkdir(parents=True)
            (folder / "note.md").write_text(f"# {word}doc\n\nThe {word}plan of the harbour.\n")
            self.folders[name] = str(folder)
            closed = {"url": "http://127.0.0.1:1/mcp", "disabled": True}
            servers = {f"{word}server{n}": closed for n in range(SERVERS)}
            (place / "data" / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
            made = await ask(self.app, name, "POST", "/api/sessions", {"search": "off"})
            self._learn(name, made)
            note = NOTE.format(word)
            file = {"name": f"{word}.txt", "media_type": "text/plain", "data": base64(note)}
            self.digests.append(sha256(note.encode()).hexdigest())
            said = {"text": f"Where is the {word}plan?", "attachments": [file]}
            sent = f"/api/sessions/{made.data['id']}/messages"
            assert (await ask(self.app, name, "POST", sent, said)).status == 202
            await self._settle()
            own = f"/api/sessions/{made.data['id']}/attachments/{self.digests[-1]}"
            assert note in (await ask(self.app, name, "GET", own)).body.decode()
            self.done["get /api/sessions/{id}/attachments/{digest}"] += 1
            kept = {"name": f"{word}project", "instructions": f"Tell the {word}plan."}
            self._learn(name, await ask(self.app, name, "POST", "/api/projects", kept))
            files = f"/api/projects/{self.projects[name][0]}/files"
            assert (await ask(self.app, name, "POST", files, file)).status == 201
            own = f"{files}/{self.digests[-1]}"
            assert note in (await ask(self.app, name, "GET", own)).body.decode()
            self.done["get /api/projects/{project}/files/{digest}"] += 1
        self.seen["path"] = {*self.folders.values(), str(self.home), "/etc"}
        self.seen["workspace"] = set(self.seen["path"])

    async def step(self) -> None:
        """One request of one of them, judged."""
        person = self.random.choice(list(PEOPLE))
        asking = self.random.random() < 0.15  # a chat with answers has more to hide
        wanted = [op for op in self.operations if op[1].endswith("/messages")] if asking else []
        method, path, operation = self.random.choice(wanted or self.operations)
        if (method, path) == ("delete", "/api/sessions") and self.random.random() < 0.98:
            return  # it ends what the others are about
        target, sessions = self._target(person, path, operation)
        body = self._body(person, operation)
        answer = await ask(self.app, person, method.upper(), target, body)
        called = f"{method} {path}"
        self.called[person, called] += 1
        self.done[called] += answer.status < 300
        sent = target + json.dumps(body, ensure_ascii=False)
        self._judge(person, called, sent, sessions, answer)
        self._learn(person, answer)
        await self._settle()

    def _judge(
        self, person: str, called: str, sent: str, sessions: list[str], answer: Answer
    ) -> None:
        text = answer.body.decode("utf-8", "replace") + str(answer.headers)
        for other in [name for name in PEOPLE if name != person]:
            word = PEOPLE[other] + r"\w*"
            self.told[person] |= set(re.findall(word, sent))
            ids = self.sessions[other] + self.projects[other]
            marks = [word, *ids, re.escape(self.folders[other])]
            found = set(re.findall("|".join(marks), text)) - self.told[person]
            leaked = [mark for mark in found if mark not in sent]
            assert not leaked, f"{person} saw {leaked} of {other}: {called} {sent}"
            if any(named in ids for named in sessions):
                assert 400 <= answer.status < 500, f"{person} reached {other}: {called}"
        assert answer.status not in (500, 0), f"{called} {sent}: {text[:500]}"

    def _learn(self, person: str, answer: Answer) -> None:
        if answer.headers.get("content-type") != "application/json" or not answer.body:
            return
        level: list[Any] = [answer.data]
        while level:
            value = level.pop()
            if isinstance(value, dict):
                for key, inner in value.items():
                    if isinstance(inner, str) and 0 < len(inner) < 200:
                        self.seen.setdefault(key, set()).add(inner)
                    level.append(inner)
            elif isinstance(value, list):
                level.extend(value)
        if answer.status == 201 and "search_path" in answer.data:
            self.sessions[person].append(answer.data["id"])
        if answer.status == 201 and "ends" in answer.data:
            self.programs.append(answer.data["name"])
        if answer.status == 201 and "chats" in answer.data:
            self.projects[person].append(answer.data["id"])

    async def _settle(self) -> None:
        """Lets answers end; those that wait for an approval are stopped."""
        for tenant in list(self.app._tenants.values()):
            runner = tenant.services.runner
            for _ in range(200):
                if not (runner._tasks or runner._starting):
                    break
                await asyncio.sleep(0.005)
            for session in list(runner._tasks):
                await runner.cancel(session)

    def _target(
        self, person: str, path: str, operation: Mapping[str, Any]
    ) -> tuple[str, list[str]]:
        """A path with its places filled, and the sessions and projects named in it."""
        named, query = [], []
        for parameter in operation["parameters"]:
            name, place = parameter["name"], parameter["in"]
            if place == "query":
                if self.random.random() < 0.3:
                    query.append(f"{name}={quoted(self._value(person, name, parameter['schema']))}")
                continue
            value = self._value(person, name, {"type": "string"})
            if name == "id":
                value = self._session(person)
                named.append(value)
            elif name == "project":
                value = self._project(person)
                named.append(value)
            elif name == "program":
                value = self.random.choice(self.programs)
            elif name == "digest":
                value = self.random.choice(self.digests)
            elif name in ("turn", "n"):
                value = str(self.random.choice((1, 1, 1, 2, 5)))
            elif path.startswith("/api/mcp/"):
                owner = self.random.choice(list(PEOPLE.values()))
                value = f"{owner}server{self.random.randrange(SERVERS)}"
            elif path.startswith("/api/agents/"):
                value = self.random.choice(["researcher", *self._agents()])
            elif path.startswith("/static/"):
                value = "app.js"
            path = path.replace(f"{{{name}}}", quoted(value))
        return path + ("?" + "&".join(query) if query else ""), named

    def _agents(self) -> list[str]:
        words = tuple(PEOPLE.values())
        return [name for name in sorted(self.seen.get("name", ())) if name.startswith(words)][:9]

    def _session(self, person: str) -> str:
        if self.random.random() < 0.3:  # the one in which something was said
            return self.sessions[person][0]
        every = [one for own in self.sessions.values() for one in own[:1] + own[-6:]]
        return self.random.choice([*every, "nosuchsession"])

    def _project(self, person: str) -> str:
        if self.random.random() < 0.5:
            return self.projects[person][-1]
        return self.random.choice([one for own in self.projects.values() for one in own[-3:]])

    def _body(self, person: str, operation: Mapping[str, Any]) -> Any:
        if "requestBody" not in operation:
            return None
        return self._value(
            person, "", operation["requestBody"]["content"]["application/json"]["schema"]
        )

    def _value(self, person: str, name: str, schema: Mapping[str, Any]) -> Any:
        if "$ref" in schema:
            schema = self.schemas[schema["$ref"].rpartition("/")[2]]
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        kind = schema.get("type", "string")
        kind = kind[0] if isinstance(kind, list) else kind
        if kind == "object":
            return self._object(person, name, schema)
        if kind == "array":
            return [self._value(person, name, schema.get("items", {"type": "string"}))]
        if kind == "boolean":
            return self.random.random() < 0.5
        if kind in ("integer", "number"):
            return self.random.choice((0, 1, 2, 3, 10))
        return self._text(person, name)

    def _object(self, person: str, name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        if name == "settings":
            return {"SEARCH_BLOCKED_DOMAINS": f"{self._text(person, '')}.example"}
        needed = schema.get("required", ())
        return {
            field: self._value(person, field, inner)
            for field, inner in schema.get("properties", {}).items()
            if field in needed or self.random.random() < 0.4
        }

    def _text(self, person: str, name: str) -> str:
        if name == "model" and self.random.random() < 0.9:
            return "builtin:extractive"
        if name == "config":
            return json.dumps({"mcpServers": {self._text(person, ""): {"url": "http://h.example"}}})
        if name == "project":
            return self._project(person)
        if name == "ids":
            return self._session(person)
        if name == "data":
            return base64(NOTE.format(PEOPLE[person]))
        if name == "query":
            return f"{self.random.choice(list(PEOPLE.values()))[:-2]} plan of the harbour"
        # The field `answer` of a run is no guess at the `answer` of somebody's instructions.
        known = sorted(self.seen.get(name, ())) if name != "answer" else []
        if known and self.random.random() < 0.5:
            return self.random.choice(known)
        return f"{PEOPLE[person]}{self.random.randrange(10_000)}"


def base64(text: str) -> str:
    """As a file goes along with a question."""
    return b64encode(text.encode()).decode()


def quoted(text: Any) -> str:
    """Part of an address."""
    from urllib.parse import quote

    return quote(str(text), safe="")


async def walked(home: Path, store: Path | str, steps: int, seed: int) -> None:
    """So many steps, and what must hold at their end."""
    async with server(home, store) as app:
        walk = Walk(app, home, seed)
        await walk.begin()
        for _ in range(steps):
            await walk.step()
        if steps >= 1000:
            every = {f"{method} {path}" for method, path, _ in walk.operations}
            assert {called for _, called in walk.called} == every
            failed = {called for called in every if not walk.done[called]}
            operators = {
                f"{m} {p}" for m, p, o in walk.operations if o.get("x-whose", "anyone") != "anyone"
            }
            assert not failed - RARE - operators, " ".join(sorted(failed - RARE - operators))
        uses = await ask(app, ADMIN, "GET", "/api/usage")
        assert {use["person"] for use in uses.data["uses"]} <= set(PEOPLE)
        for word in PEOPLE.values():
            listed = await ask(app, ADMIN, "GET", "/api/sessions")
            assert word not in (uses.body + listed.body).decode().replace("annaqz@", "")
    for name, word in PEOPLE.items():
        place = Path(walk.folders[name]).parents[1]
        other = next(w for w in PEOPLE.values() if w != word).encode()
        held = [p for p in place.rglob("*") if p.is_file() and other + b"plan" in p.read_bytes()]
        assert held == []


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.torture)])
async def test_nobody_sees_anything_of_another(
    seed: int, tmp_path: Path, store: Path | str
) -> None:
    """A sample of the walk: every answer to one holds no word, no id and no folder of the other."""
    await walked(tmp_path / "home", store, 300, seed)


@pytest.mark.torture
async def test_nobody_sees_anything_of_another_in_5000_steps(
    tmp_path: Path, store: Path | str
) -> None:
    """The whole walk: every route by both of them, and each route works for somebody."""
    await walked(tmp_path / "home", store, 5_000, 7)


ANNA, BOB = PEOPLE


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
        for name in PEOPLE:
            await ask(app, name, "GET", "/api/me")
        home = tmp_path / "home"
        places = {p.read_text()[:-1]: p.parent for p in home.glob("people/*/name")}
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
    async with server(home, store) as app:
        for _ in range(2_000):
            if ANNA in app._tenants and not app._services.log.people_running():
                break
            await asyncio.sleep(0.02)
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


def test_a_persons_own_key_goes_before_everybodys(tmp_path: Path) -> None:
    """What the server is started with is there for all; a key of one's own is used instead."""
    env = Environment({"environment": {"BRAVE_API_KEY": "for all", "SEARCHLOOP_OFFLINE": "1"}})
    mine = env.of_person("anna", tmp_path)
    assert (mine["BRAVE_API_KEY"], Settings.load(mine).offline) == ("for all", True)
    assert mine.key_store
    mine.key_store.save("BRAVE_API_KEY", "mine", (), mine, file=True)
    assert mine["BRAVE_API_KEY"] == "mine"
    assert env["BRAVE_API_KEY"] == "for all"


def test_a_persons_key_is_known_to_the_log(tmp_path: Path) -> None:
    """What no log of the server may hold includes the keys of people, saved now or before."""
    services = open_services(Environment({"flag": {"SEARCHLOOP_HOME": str(tmp_path)}}))
    anna = services.of_person("anna")
    assert "annas-own-key" not in services.secrets()
    store = anna.settings.env.key_store
    assert store
    store.save("BRAVE_API_KEY", "annas-own-key", (), anna.settings.env, file=True)
    assert "annas-own-key" in services.secrets()
    services.close()


def test_settings_for_all_are_read_by_all(tmp_path: Path) -> None:
    """The server's config.toml lies below each person's own."""
    env = Environment({"config.toml": {"SEARCHLOOP_MODEL": "m:all", "SEARCHLOOP_SEARCH": "auto"}})
    (tmp_path / "config.toml").write_text('SEARCHLOOP_SEARCH = "local"\n')
    settings = Settings.load(env.of_person("anna", tmp_path))
    assert (settings.model, settings.search) == ("m:all", "local")


async def test_deleting_everything_is_ones_own(tmp_path: Path, store: Path | str) -> None:
    """All chats of the person, temporary ones too; nobody else's."""
    async with server(tmp_path / "home", store) as app:
        for person in PEOPLE:
            for more in ({}, {"temporary": True}):
                made = await ask(app, person, "POST", "/api/sessions", more)
                words = {"text": f"What does {PEOPLE[person]} plan?"}
                await ask(app, person, "POST", f"/api/sessions/{made.data['id']}/messages", words)
        deleted = await ask(app, ANNA, "DELETE", "/api/sessions")
        assert deleted.data == {"deleted": 2}
        left = [(await ask(app, p, "GET", "/api/sessions")).data["sessions"] for p in PEOPLE]
        assert [len(each) for each in left] == [0, 1]
