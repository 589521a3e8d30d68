"""What the models of a Chat Completions server can do: as it says itself, else by name.

Only models that are known to search have native search, and those search always: the switch cannot
turn it off, so they are refused while it is off. Every other name is taken to call functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from agent.models import Capabilities

UNKNOWN = Capabilities()


@dataclass(frozen=True, slots=True)
class Searcher:
    """Models that search by themselves. `options`: whether they take `web_search_options`."""

    pattern: str
    options: bool


SEARCHING = Capabilities(native_search=True, tools=False)
# Function tools beside their search are documented for none of them.
SEARCHERS: tuple[Searcher, ...] = (
    Searcher("*gpt-5-search-api*", options=True),
    Searcher("*gpt-4o-search-preview*", options=True),
    Searcher("*gpt-4o-mini-search-preview*", options=True),
    Searcher("*:online", options=False),
    Searcher("perplexity/*", options=True),
    Searcher("sonar*", options=True),
)
_OFFICIAL = ("gpt-", "o1", "o3", "o4", "ft:", "chatgpt-")
_NOT_CHAT = (
    *("audio", "realtime", "transcribe", "tts", "image", "embedding", "instruct", "moderation"),
    *("deep-research", "whisper", "codex", "-pro", "live"),
)


def searcher(model: str) -> Searcher | None:
    """What is known of a model that always searches; None for every other."""
    return next((s for s in SEARCHERS if fnmatchcase(model, s.pattern)), None)


def answers_questions(model: str) -> bool:
    """Whether a model that the official server lists takes chat completions."""
    return model.startswith(_OFFICIAL) and not any(word in model for word in _NOT_CHAT)


class Catalog:
    """What one server listed; capabilities are asked for without waiting."""

    def __init__(self) -> None:
        self._learnt: dict[str, Capabilities] = {}

    def capabilities(self, model: str) -> Capabilities:
        """See `Provider.capabilities`."""
        known = searcher(model)
        learnt = self._learnt.get(model, UNKNOWN)
        return replace(SEARCHING, context=learnt.context) if known else learnt

    def learn(self, answer: Any) -> list[str]:
        """The model names of `GET /models`, sorted; what else it says is kept."""
        listed = answer.get("data", answer.get("models")) if isinstance(answer, dict) else answer
        for entry in listed if isinstance(listed, list) else ():
            name = entry.get("id") if isinstance(entry, dict) else None
            if isinstance(name, str) and name:
                self._learnt[name] = _read(entry)
        return sorted(self._learnt)


def _read(entry: Mapping[str, Any]) -> Capabilities:
    parameters = entry.get("supported_parameters")
    listed = parameters if isinstance(parameters, list) else None
    architecture = entry.get("architecture")
    inputs = architecture.get("input_modalities") if isinstance(architecture, dict) else None
    meta = entry.get("meta")
    # A window that the server was started with says more than what the model was trained for.
    sizes = (entry.get("max_model_len"), entry.get("context_length"), entry.get("context_window"))
    loaded = meta.get("n_ctx") if isinstance(meta, dict) else None
    return Capabilities(
        tools=listed is None or "tools" in listed,
        thinking=listed is not None and "reasoning" in listed,
        vision=isinstance(inputs, list) and "image" in inputs,
        context=next((n for n in (loaded, *sizes) if type(n) is int and n > 0), None),
    )
