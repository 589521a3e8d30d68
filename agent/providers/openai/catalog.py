"""What the models of this provider can do, as data, and which of them a picker offers.

A model is looked up by the longest beginning of its name. One that nobody has heard of is assumed
to call functions and to search: a refused search tool falls back once, a wrong guess the other way
would hide the feature.
"""

from __future__ import annotations

from agent.models import Capabilities

_REASONING = {"thinking": True, "vision": True}
_SEARCHES = {"native_search": True, "tools_with_native_search": True}

UNKNOWN = Capabilities(native_search=True, tools_with_native_search=True)
BY_PREFIX: dict[str, Capabilities] = {
    "gpt-3.5": Capabilities(context=16_385),
    "gpt-4": Capabilities(context=8_192),
    "gpt-4-turbo": Capabilities(vision=True, context=128_000),
    "gpt-4.1": Capabilities(**_SEARCHES, vision=True, context=1_047_576),
    "gpt-4.1-nano": Capabilities(vision=True, context=1_047_576),
    "gpt-4o": Capabilities(**_SEARCHES, vision=True, context=128_000),
    "o1": Capabilities(**_REASONING, context=200_000),
    "o3": Capabilities(**_SEARCHES, **_REASONING, context=200_000),
    "o3-mini": Capabilities(thinking=True, context=200_000),
    "o4-mini": Capabilities(**_SEARCHES, **_REASONING, context=200_000),
    "gpt-5": Capabilities(**_SEARCHES, **_REASONING, context=400_000),
    "gpt-5-chat": Capabilities(**_SEARCHES, vision=True, context=128_000),
    "gpt-5.": Capabilities(**_SEARCHES, **_REASONING),
    "gpt-6": Capabilities(**_SEARCHES, **_REASONING),
}
_LONGEST_FIRST = sorted(BY_PREFIX, key=len, reverse=True)

# Offered without asking the server; any other name works too.
OFFERED = (
    "gpt-6.1-sol",
    "gpt-6.1-terra",
    "gpt-6-astra",
    "gpt-6-sol",
    "gpt-6-luna",
    "gpt-5.6-sol",
    "gpt-5.6-terra",
    "gpt-5.6-luna",
    "gpt-5.5",
    "gpt-5.4",
    "gpt-5.4-mini",
    "gpt-4.1-mini",
)
_CHAT = ("gpt-", "o1", "o3", "o4", "ft:", "codex", "chatgpt-")
_NOT_CHAT = (
    *("audio", "realtime", "transcribe", "tts", "image", "embedding", "instruct", "moderation"),
    *("search-preview", "search-api", "gpt-3.5", "deep-research", "whisper", "live"),
)


def capabilities(model: str) -> Capabilities:
    """What `model` can do; a fine-tuned model can do what its base can."""
    name = model.removeprefix("ft:")
    prefix = next((p for p in _LONGEST_FIRST if name.startswith(p)), None)
    return BY_PREFIX[prefix] if prefix else UNKNOWN


def answers_questions(model: str) -> bool:
    """Whether a listed model belongs into a picker for conversations."""
    return model.startswith(_CHAT) and not any(word in model for word in _NOT_CHAT)
