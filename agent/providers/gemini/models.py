"""A table of what Gemini's models can do, and the models that a picker offers.

The longest prefix of a name counts. A model newer than those listed is assumed to be like the
newest. Any other name is assumed to call functions and to search: a refused search tool
falls back once, while the opposite guess would hide the feature.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from searchloop.agent.providers._common import by_prefix
from searchloop.agent.types import Capabilities

MILLION = 1_048_576


@dataclass(frozen=True, slots=True)
class GeminiModel:
    """`signs`: its calls must come back signed. `reads`: it opens pages named in the question."""

    can: Capabilities
    signs: bool = False
    reads: bool = False


_SECOND = Capabilities(native_search=True, vision=True, context=MILLION)
_THINKING = replace(_SECOND, thinking=True)
_THIRD = replace(_THINKING, tools_with_native_search=True)
UNKNOWN = GeminiModel(replace(_THIRD, thinking=False, context=None), signs=True)
BY_PREFIX: dict[str, GeminiModel] = {
    "gemini-": GeminiModel(_THIRD, signs=True, reads=True),
    "gemini-1": GeminiModel(Capabilities(vision=True, context=MILLION)),
    "gemini-2": GeminiModel(_SECOND),
    "gemini-2.0-flash-lite": GeminiModel(Capabilities(vision=True, context=MILLION)),
    "gemini-2.5": GeminiModel(_THINKING, reads=True),
    "gemini-2.5-flash-image": GeminiModel(Capabilities(tools=False, vision=True)),
    "gemini-2.5-flash-lite": GeminiModel(_SECOND, reads=True),  # thinks only when told how much
    "gemma-": GeminiModel(Capabilities(tools=False, vision=True)),
    "learnlm-": GeminiModel(Capabilities(vision=True)),
}

# Offered without asking the server; any other name works too.
OFFERED = {
    name: name
    for name in (
        *("gemini-3.5-flash", "gemini-3.1-pro-preview", "gemini-3-flash-preview"),
        *("gemini-2.5-pro", "gemini-2.5-flash", "gemini-2.5-flash-lite"),
    )
}
_OTHER_KINDS = (
    *("image", "tts", "audio", "live", "embedding", "robotics", "computer-use", "veo", "omni"),
    *("native", "lyria", "translate", "deep-research"),
)


def model(name: str) -> GeminiModel:
    """Returns the entry for a model's name; UNKNOWN for a tuned model."""
    return by_prefix(BY_PREFIX, name.removeprefix("models/"), UNKNOWN)


def answers_questions(name: str) -> bool:
    """Returns True if a listed model belongs in a picker for conversations."""
    return name.startswith("gemini-") and not any(word in name for word in _OTHER_KINDS)
