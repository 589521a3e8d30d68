"""The server and its key, and what its models can do: as it reports itself, else by its dialect.

Models that search with every answer are refused while the switch is off, which they cannot obey. A
model that nobody knows is assumed to call functions and not to search. `dialects.toml` lists, by
address and by family of models, what is otherwise than the API describes. A model of another name,
on a server that nobody listed, is found by the words in which it refuses a request.
"""

from __future__ import annotations

import ipaddress
import re
import tomllib
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from searchloop.agent.providers._wire import can_chat, member
from searchloop.agent.settings import Setting
from searchloop.agent.transport.exchange import Endpoint, origin_of
from searchloop.agent.types import Capabilities
from searchloop.agent.types.attachments import IMAGES, PDF


@dataclass(frozen=True, slots=True)
class Dialect:
    """The traits of one model at one address; the defaults are those of the API.

    `search`: how it searches the web by itself. "" does not, "always" does so with every answer;
    any other value is the type of the server's tool. `marks`: its `[1]` name the pages that it
    lists. `id_length`: ids of calls have exactly so many letters and digits. `user_after_tool`: a
    question may follow a result. `reasoning`: the member that each message with calls must have.
    `prints`: a call may stand in the text. `limit` names the member that limits the answer;
    `counts`: it takes `stream_options`; `shapes`: it takes a `response_format` with a schema.
    `efforts`: the words of its `reasoning_effort`.
    """

    search: str = ""
    marks: bool = False
    id_length: int = 0
    user_after_tool: bool = True
    reasoning: str = ""
    prints: bool = True
    limit: str = "max_tokens"
    counts: bool = True
    shapes: bool = True
    efforts: tuple[str, ...] = ()

    @property
    def always(self) -> bool:
        """True if no answer comes without a search."""
        return self.search == "always"


_FILE = Path(__file__).with_name("dialects.toml")
_TRAITS = frozenset(field.name for field in fields(Dialect))


@cache
def _entries() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(_FILE.read_text("utf-8"))


def taught_by(words: str) -> list[str]:
    """Returns the entries that the words of a refusal ask for."""
    return [
        name
        for name, entry in _entries().items()
        if "refusal" in entry and re.search(entry["refusal"], words, re.IGNORECASE)
    ]


class Dialects:
    """The dialects of one server's models, and what refusals taught about them."""

    def __init__(self, host: str) -> None:
        self._host = host.lower()
        self._taught: dict[str, set[str]] = {}

    def of(self, model: str) -> Dialect:
        """Returns the dialect of a model."""
        taught = self._taught.get(model, ())
        traits: dict[str, Any] = {}
        for name, entry in _entries().items():
            if name in taught or self._fits(entry, model.lower()):
                traits |= {k: v for k, v in entry.items() if k in _TRAITS}
        traits["efforts"] = tuple(traits.get("efforts", ()))
        return Dialect(**traits)

    def learn(self, model: str, words: str) -> bool:
        """Learns from the words of a refusal. Returns True if another try may succeed."""
        before = self.of(model)
        self._taught.setdefault(model, set()).update(taught_by(words))
        return self.of(model) != before

    def _fits(self, entry: Mapping[str, Any], model: str) -> bool:
        return any(fnmatchcase(self._host, host) for host in entry.get("hosts", ())) or any(
            fnmatchcase(model, name) for name in entry.get("models", ())
        )


UNKNOWN = Capabilities()


# For none of the models that always search function tools beside their search are documented.
SEARCHING = Capabilities(native_search=True, tools=False)


class ListedModels:
    """Remembers the models that one server listed."""

    def __init__(self, dialects: Dialects | None = None) -> None:
        self._dialects = dialects or Dialects("")
        self._learnt: dict[str, Capabilities] = {}
        self._inputs: dict[str, list[Any]] = {}  # modalities, of models that name them

    def capabilities(self, model: str) -> Capabilities:
        learnt, dialect = self._learnt.get(model, UNKNOWN), self._dialects.of(model)
        if dialect.always:
            return replace(SEARCHING, context=learnt.context)
        beside = bool(dialect.search) and learnt.tools
        efforts = learnt.efforts or dialect.efforts
        return replace(
            learnt, native_search=beside, tools_with_native_search=beside, efforts=efforts
        )

    async def takes(self, model: str) -> frozenset[str]:
        """See `Abilities.files`. A model that is not described may see."""
        inputs = self._inputs.get(model, ["image"])
        seen = IMAGES if "image" in inputs else frozenset[str]()
        return seen | {PDF} if "file" in inputs else seen

    def learn(self, answer: Any) -> list[str]:
        """Reads the answer of `GET /models`. Returns the names, sorted."""
        listed = answer.get("data", answer.get("models")) if isinstance(answer, dict) else answer
        for entry in listed if isinstance(listed, list) else ():
            name = entry.get("id") if isinstance(entry, dict) else None
            if isinstance(name, str) and name and can_chat(entry):
                self._learnt[name] = _read(entry)
                inputs = member(entry.get("architecture"), "input_modalities")
                if isinstance(inputs, list):
                    self._inputs[name] = inputs
        return sorted(self._learnt)


def _read(entry: Mapping[str, Any]) -> Capabilities:
    parameters = entry.get("supported_parameters")
    listed = parameters if isinstance(parameters, list) else None
    inputs = member(entry.get("architecture"), "input_modalities")
    # A window that the server was started with says more than what the model was trained for.
    sizes = (entry.get("max_model_len"), entry.get("context_length"), entry.get("context_window"))
    loaded = member(entry.get("meta"), "n_ctx") or entry.get("loaded_context_length")
    return Capabilities(
        tools=listed is None or "tools" in listed,
        thinking=listed is not None and "reasoning" in listed,
        vision=isinstance(inputs, list) and "image" in inputs,
        context=next((n for n in (loaded, *sizes) if type(n) is int and n > 0), None),
        efforts=_efforts(entry, listed or ()),
    )


def _efforts(entry: Mapping[str, Any], parameters: Container[str]) -> tuple[str, ...]:
    """Returns the words for how long a model thinks: those listed, else those that all take."""
    named = member(entry.get("capabilities"), "reasoning_effort")
    if isinstance(named, list):
        return tuple(word for word in named if isinstance(word, str))
    return ("low", "medium", "high") if "reasoning_effort" in parameters else ()


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "OPENAI_CHAT_BASE_URL",
        "A server of the Chat Completions API (default: OPENAI_BASE_URL)",
        aliases=("OPENAI_BASE_URL",),
    ),
    Setting("OPENAI_CHAT_API_KEY", "Key for that server, if it wants one", secret=True),
)


@dataclass(frozen=True, slots=True)
class ChatServer(Endpoint):
    """One server; its `base` is empty while none is set. `shared`: so is the Responses API's."""

    shared: bool = False
    setting: str = field(default="OPENAI_CHAT_BASE_URL", kw_only=True)

    @property
    def own(self) -> bool:
        """True for this machine or one beside it, where the user decides on the window."""
        try:
            return self.loopback or ipaddress.ip_address(self.host).is_private
        except ValueError:
            return bool(self.host) and "." not in self.host.removesuffix(".local")


def find_server(env: Mapping[str, str]) -> ChatServer:
    """Returns the server of the settings."""
    names = ("OPENAI_CHAT_BASE_URL", "OPENAI_BASE_URL", "OPENAI_CHAT_API_KEY", "OPENAI_API_KEY")
    own, shared, key, general_key = ((env.get(name) or "").strip() for name in names)
    base = own or shared
    origin = origin_of(base)
    same = origin is not None and origin == origin_of(shared)
    # OPENAI_API_KEY goes only to OpenAI and to the origin of OPENAI_BASE_URL.
    if same or origin == origin_of("https://api.openai.com"):
        key = key or general_key
    return ChatServer(base, key, same)
