"""Fakes for the tests of programs that use searchloop: no network, no keys, no plugin.

from searchloop import Agent
from searchloop.testing import RecordedSearch, ScriptedModel, call, offline

def test_it_cites_the_timetable(tmp_path):
    model = ScriptedModel(call("web_search", query="ferry"), "It leaves at 07:40 [1].")
    search = RecordedSearch({"https://ferry.example/": "The ferry leaves at 07:40."})
    with Agent(offline(tmp_path), model=model, search_backend=search) as agent:
        answer = agent.ask("When does the ferry leave?", search="local")
    assert answer.citations[0].url == "https://ferry.example/"
    assert search.queries == ["ferry"]
"""

from __future__ import annotations

import json
import re
import tempfile
import weakref
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from searchloop.agent.errors import ProviderError
from searchloop.agent.observe.logs import secrets_in
from searchloop.agent.providers import load, settings_of, split_model
from searchloop.agent.settings import Environment, Settings
from searchloop.agent.tools.backend import Wsgi
from searchloop.agent.transport.exchange import Headers, Response
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Capabilities, ModelInfo, Request, StreamEvent, ToolCall
from searchloop.analysis.redaction import redacted
from searchloop.compose import LazyApp
from searchloop.function_provider import FunctionProvider, Said
from searchloop.search_backend.api.app import create_app
from searchloop.search_backend.engines import Access, Engine
from searchloop.search_backend.fetch.http import Fetched
from searchloop.search_backend.settings import SearchSettings
from searchloop.search_backend.types import EngineError, NotReachable, Query, SearchResult

Step = str | Said | Exception | Sequence[str | Said]
ScriptedTurn = Step | Callable[[Request], Step | Awaitable[Step]]
_WORDS = re.compile(r"\s*\S+|\s+$")
_TAG = re.compile(r"<[^<>]*>")
_TITLE = re.compile(r"<(?:title|h1)[^<>]*>([^<]+)", re.IGNORECASE)


def call(name: str, /, **arguments: Any) -> ToolCall:
    """Returns a call of a tool for a `ScriptedModel`; it gets a new id when it is made.

    ScriptedModel(call("stock", item="bolt"), "There are 12.")

    `name` is the tool, `arguments` are what the model fills in.
    """
    return ToolCall("", name, arguments)


class ScriptedModel(FunctionProvider):
    """A model that plays one of `turns` for each request.

    A turn is the text of an answer, a `call`, a list of texts, calls and a `Usage`, an exception to
    raise (`ProviderError` as a model's failure), or a function that gets the `Request` and returns
    one of these; an `async def` may wait, so that a test can stop the answer meanwhile. `requests`
    is what the model was sent. A request after the last turn fails with the code `script_over`.

        model = ScriptedModel([call("stock", item="bolt"), call("stock", item="nut")], "Both.")
        Agent(offline(tmp_path), model=model, tools=[stock]).ask("Bolts and nuts?")
        model.requests[0].tools[0].name
    """

    def __init__(
        self, *turns: ScriptedTurn, name: str = "scripted", can: Capabilities | None = None
    ) -> None:
        super().__init__(name, self._say, can or Capabilities())
        self.turns: list[ScriptedTurn] = list(turns)
        self.requests: list[Request] = []

    async def _say(self, request: Request) -> AsyncIterator[Said]:
        number = len(self.requests)
        self.requests.append(replace(request, messages=tuple(request.messages)))
        if number >= len(self.turns):
            what = f"The script has {len(self.turns)} turns, and this is request {number + 1}."
            raise ProviderError("script_over", what, "Give ScriptedModel another turn.")
        turn = self.turns[number]
        played = turn(request) if callable(turn) else turn
        turn = await played if isinstance(played, Awaitable) else played
        if isinstance(turn, Exception):
            raise turn
        parts: Any = turn if isinstance(turn, list | tuple) else [turn]
        for part in parts:
            for said in _WORDS.findall(part) if isinstance(part, str) else [part]:
                yield said


class RecordedModel:
    """A model whose answers are recorded in a file: asked where there is no file, else played.

    `model` is `provider:model`. What a server answered is kept, byte for byte, without the keys of
    `settings`; nothing that was sent is. Played answers need no network and no key, and come in the
    order of the requests to a path; one that is not in the file fails with `not_recorded`. To
    record anew, delete the file.

        model = RecordedModel("turn.json", "openai:gpt-5-mini")
        Agent(offline(tmp_path), model=model).ask("When does the ferry leave?")
    """

    def __init__(self, path: str | Path, model: str, settings: Settings | None = None) -> None:
        settings = settings or Settings.load()
        self.name, _ = split_model(model)
        tape = _Tape(Path(path), secrets_in(settings))
        secret = [each.name for each in settings_of(self.name) if each.secret]
        made_up = dict.fromkeys(secret, "made-up-key") if tape.plays else {}
        self._inner = load(self.name, {**settings.env, **made_up}, tape)
        self.model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def capabilities(self, model: str) -> Capabilities:
        """Returns what the provider says."""
        return self._inner.capabilities(model)

    def check(self, model: str) -> None:
        """Raises ConfigError where nothing is recorded and the provider lacks something."""
        self._inner.check(model)

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Yields the events of one step."""
        return self._inner.stream(request)

    async def models(self) -> list[ModelInfo]:
        """Returns the recorded model alone."""
        return [ModelInfo(self.model)]


class _Tape(Transport):
    """Plays a file of answers if there is one; else asks the servers and writes it."""

    def __init__(self, path: Path, secrets: Collection[str]) -> None:
        super().__init__()
        self._path, self._secrets = path, secrets
        self.plays = path.exists()
        self._answers: list[dict[str, Any]] = (
            json.loads(path.read_text("utf-8")) if self.plays else []
        )

    @asynccontextmanager
    async def post(
        self, url: str, headers: Headers, body: bytes | None, method: str = "POST"
    ) -> AsyncIterator[Response]:
        asked = {"method": method, "path": urlsplit(url).path}
        if self.plays:
            found = next((each for each in self._answers if each.items() >= asked.items()), None)
            if found is None:
                what = f"{self._path} holds no further answer to {method} {asked['path']}."
                raise ProviderError("not_recorded", what, "Delete the file, and record it again.")
            self._answers.remove(found)
            pieces = iter((found["body"].encode("utf-8", "surrogateescape"), b""))
            yield Response(found["status"], {"content-type": found["type"]}, _next_of(pieces))
            return
        heard, once = list[bytes](), Transport()  # nobody closes a provider's connections later
        async with aclosing(once), once.post(url, headers, body, method) as response:
            yield Response(response.status, response.headers, _heard(response, heard))
        text = redacted(b"".join(heard).decode("utf-8", "surrogateescape"), self._secrets)
        kind = response.headers.get("content-type", "")
        self._answers.append({**asked, "status": response.status, "type": kind, "body": text})
        self._path.write_text(json.dumps(self._answers, indent=1))


def _next_of(pieces: Iterator[bytes]) -> Callable[[], Awaitable[bytes]]:
    async def read() -> bytes:
        return next(pieces)

    return read


def _heard(response: Response, heard: list[bytes]) -> Callable[[], Awaitable[bytes]]:
    async def read() -> bytes:
        heard.append(await anext(response, b""))
        return heard[-1]

    return read


class RecordedSearch:
    """A search backend over given pages and results, with nothing behind it.

    `pages` are texts by address: plain text, or HTML if it begins with `<`. `results` are the
    addresses that a query finds, in order; a query that is not among them finds every page, and
    without any it fails. It is the real backend over one engine, `recorded`, so pages are read and
    cut, and domains kept to, as they are on the web. `queries` and `opened` say what was asked for.

        search = RecordedSearch({"https://a.example/": "<h1>Tides</h1><p>High water is at noon."})
        Agent(offline(tmp_path), model=model, search_backend=search)
    """

    def __init__(
        self, pages: Mapping[str, str], results: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self.pages, self.results = dict(pages), dict(results or {})
        self.queries: list[str] = []
        self.opened: list[str] = []
        self._app = LazyApp(self._made)

    @classmethod
    def load(cls, path: str | Path) -> RecordedSearch:
        """Reads {"pages": {address: text}, "results": {query: [address]}} from a JSON file."""
        return cls(**json.loads(Path(path).read_text("utf-8")))

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """Answers a request. See PEP 3333."""
        return self._app(environ, start)

    def _made(self) -> Wsgi:
        home = tempfile.TemporaryDirectory(prefix="recorded-search-", ignore_cleanup_errors=True)
        weakref.finalize(self, home.cleanup)
        engine = Engine("recorded", "Recorded", self._search, remote=False)
        own = SearchSettings(Path(home.name), ("recorded",))
        return create_app(own, fetch=self._fetch, engines={"recorded": engine})

    def _search(self, query: Query, _access: Access) -> list[SearchResult]:
        self.queries.append(query.text)
        if not self.pages and query.text not in self.results:
            what = f"Nothing is recorded for {query.text!r}."
            raise EngineError("network", what, "Give RecordedSearch pages or results.")
        return [
            SearchResult(_title(text, url), url, _TAG.sub(" ", text)[:300].strip(), "recorded")
            for url in self.results.get(query.text, self.pages)
            for text in [self.pages.get(url, "")]
        ][: query.max_results]

    def _fetch(
        self, url: str, *, host_allowed: Callable[[str], bool] | None = None, known: Any = None
    ) -> Fetched:
        self.opened.append(url)
        text = self.pages.get(url)
        if text is None:
            raise NotReachable("it is not recorded")
        kind = "text/html" if text.lstrip().startswith("<") else "text/plain"
        return Fetched(url, url, 200, kind, "utf-8", text.encode())


def offline(home: str | Path, **values: str) -> Settings:
    """Returns settings that know nothing of this machine: an own data folder, no environment, no
    network, and what else is given by name.

    `home` is best a folder that the test throws away, such as `tmp_path`.

        Agent(offline(tmp_path, SEARCHLOOP_MAX_STEPS="3"), model=ScriptedModel("Hello."))
    """
    layer = {"SEARCHLOOP_HOME": str(home), "SEARCHLOOP_OFFLINE": "1", **values}
    return Settings.load(Environment({"flag": layer}))


def _title(text: str, url: str) -> str:
    """Returns what a page calls itself, else its address."""
    found = _TITLE.search(text)
    return " ".join(found[1].split()) if found else url
