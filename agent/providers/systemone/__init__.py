"""Decision models: they choose among given answers and write no text, so they check, not chat.

The schema of a request holds the questions: each property is a choice among its `enum`, and its
`description` says what is asked of the request's text. The answer is an object of that schema; what
the model could not decide is absent from it.

Spec: https://docs.typesafe.ai/api; llama.cpp, vLLM, OpenRouter and others serve the same.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from searchloop.agent.errors import ConfigError
from searchloop.agent.providers import Abilities, fetched
from searchloop.agent.providers._codec import CodecBase
from searchloop.agent.providers._keyed import KeyedProvider, ModelTable
from searchloop.agent.settings import Setting
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import (
    Capabilities,
    Finished,
    Message,
    ModelInfo,
    Request,
    StreamEvent,
    Usage,
)

__all__ = ["SETTINGS", "SystemOne", "create"]

DEFAULT_BASE = "https://api.typesafe.ai/v1"
SETTINGS: tuple[Setting, ...] = (
    Setting("SYSTEMONE_API_KEY", "Decision models: https://console.typesafe.ai", secret=True),
    Setting("SYSTEMONE_BASE_URL", "Another server of decision models", DEFAULT_BASE),
)
MODELS: ModelTable[Capabilities] = ModelTable(__file__, lambda able: able)
_SECONDS = 60.0


class SystemOneCodec(CodecBase):
    """The address of a server, its key, and its errors."""

    vendor, home, api = "TypeSafe", DEFAULT_BASE, "the System One API"
    path = "systemone"
    setting, key_setting = "SYSTEMONE_BASE_URL", "SYSTEMONE_API_KEY"


class SystemOne(KeyedProvider):
    """See `agent.providers.Provider`. Nobody chats with such a model: the picker has none."""

    name, codec, known = "systemone", SystemOneCodec, MODELS

    def __init__(self, codec: CodecBase, transport: Transport) -> None:
        super().__init__(codec, transport)
        self.abilities = Abilities(writes=False, decides=True, listing=self.listing)

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """See `Provider.stream`. Raises ConfigError for a request without such questions."""
        asked: Mapping[str, Any] = (request.schema or {}).get("properties") or {}
        if not asked:
            what = f"{request.model} is a decision model: it chooses among answers and writes none."
            remedy = "Ask a language model, and let this one check what it says."
            raise ConfigError("no_model", what, remedy)
        questions = {
            name: {
                "type": "choice",
                "instructions": question["description"],
                "criteria": dict.fromkeys(question["enum"]),
            }
            for name, question in asked.items()
        }
        state = "\n\n".join(message.content for message in request.messages)
        body = {"model": request.model, "state": state, "questions": questions}
        path, seconds = self.codec.path, _SECONDS
        yield await fetched(
            self._codec, self._transport, path, _finished, seconds, method="POST", body=body
        )

    async def models(self) -> list[ModelInfo]:
        return []

    def _read_list(self, answer: Any) -> Mapping[str, str]:
        rows = answer.get("models") or answer["data"]
        return {name: name for row in rows if (name := row.get("name") or row["id"])}


create = SystemOne.create


def _finished(document: Any) -> Finished:
    said = {name: each["choice"] for name, each in document["answers"].items()}
    counts = document.get("usage") or {}
    names = {"input_tokens": "input_tokens", "output_tokens": "output_tokens", "cost": "cost_usd"}
    usage = Usage(**{ours: counts[name] for name, ours in names.items() if name in counts})
    return Finished(Message("assistant", json.dumps(said)), "stop", usage)
