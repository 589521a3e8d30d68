"""An agent with one session on an Ollama server, and a small web that it can search."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from searchloop import Agent, AnswerError, Settings
from searchloop import Answer as Told
from searchloop.agent.log.events import Event
from searchloop.agent.settings import load_environment
from searchloop.agent.tools import Tool
from tests.agent.providers.vendors import CHAT
from tests.agent.scripted import SearchApp, found, page
from tests.fake_ollama import Answer, Model, say
from tests.fakes import FakeServer, Received, Reply, json_reply, sse_reply

TOOLLESS = Model("gemma3:4b", ("completion",))
SMALL = Model("qwen3:4b", num_ctx=4096)
FACT = "The ferry to Lindhaug leaves at 07:40 from pier four."


@dataclass
class Desk:
    """An agent with one session on a fake server."""

    agent: Agent
    app: SearchApp
    home: Path
    session: str = ""
    events: list[Event] = field(default_factory=list)

    def ask(self, question: str, model: str, **more: Any) -> Told[Any]:
        """One turn of the session, searching with our own search."""
        self.session = self.session or self.agent.log.create_session(model=model).id
        options = {"search": "local", **more}
        try:
            told = self.agent.ask(question, session=self.session, model=model, **options)
        except AnswerError as error:
            told = error.answer
        self.events = self.agent.log.read(self.session)
        return told

    def notices(self) -> list[str]:
        """The codes of the session's notices."""
        return [e.data["code"] for e in self.events if e.type == "notice"]

    def rungs(self) -> list[str | None]:
        """How the calls of each message arrived."""
        return [details.get("calls") for details in self.details()]

    def details(self) -> list[Mapping[str, Any]]:
        """The details of the session's messages."""
        return [e.data["details"] for e in self.events if e.type == "message"]


@contextmanager
def desk(
    server: FakeServer | str,
    home: Path,
    app: SearchApp | None = None,
    tools: Iterable[Tool] = (),
    **env: str,
) -> Iterator[Desk]:
    """A desk of its own home, on this server or the one at this address."""
    url = server if isinstance(server, str) else server.url
    settings = Settings.load(
        load_environment({"SEARCHLOOP_HOME": str(home), "OLLAMA_HOST": url, **env}, {}, home)
    )
    app = app or lake()
    with Agent(settings, search_backend=app, tools=tools) as agent:
        yield Desk(agent, app, home)


def lake(size: int = 400, pages: int = 3) -> SearchApp:
    """A web of pages that all know the fact."""
    text = "Nothing happened on the lake. " * (size // 60)
    urls = [f"https://lake.example/{n}" for n in range(1, pages + 1)]
    routes = {"/api/web-search": found(*urls), "/api/open-page": page(f"{text}{FACT} {text}")}
    return SearchApp(routes)


def envelope(tool: str, **arguments: Any) -> Answer:
    """What a model writes into the form."""
    return say(json.dumps({"tool": tool, "arguments": arguments}))


LLAMA = (
    "request ({asked} tokens) exceeds the available context size ({n} tokens), try increasing it"
)


class SmallServer(FakeServer):
    """A Chat Completions server with a window; a token is a quarter of the characters.

    What is longer it refuses in these `words`, or cuts without a word to `keep` tokens, as Ollama
    does at /v1. `listed` is what its list says of its one model, `taken` the prompts that it read.
    """

    def __init__(self, window: int, words: str = "", listed: Any = None, keep: int = 0) -> None:
        super().__init__(self._reply)
        self._window, self._words, self._listed, self._keep = window, words, listed, keep
        self.taken: list[int] = []

    def _reply(self, request: Received) -> Reply:
        if request.method == "GET":
            return json_reply({"data": [{"id": "m", **(self._listed or {})}]})
        asked = len(json.dumps(request.json["messages"])) // 4
        if asked > self._window and self._words:
            words = self._words.format(n=self._window, asked=asked)
            return json_reply({"error": {"message": words, "code": 400}}, 400)
        self.taken.append(asked)
        read = asked if asked <= self._window else self._keep
        *events, done = CHAT.says("At ", "07:40.")
        counts = {"usage": {"prompt_tokens": read, "completion_tokens": 4}}
        return sse_reply([*events, {"choices": [], **counts}, done])
