"""The capabilities of Gemini's models, and the models that a picker offers.

The longest matching beginning of a name counts. A model newer than those listed is assumed to be
like the newest. Any other name is assumed to call functions and to search: a refused search tool
falls back once, while the opposite guess would hide the feature.
"""

from __future__ import annotations

from dataclasses import dataclass

from searchloop.agent.types import Capabilities

MILLION = 1_048_576


@dataclass(frozen=True, slots=True)
class GeminiModel:
    """`signs`: its calls must come back signed. `reads`: it opens pages named in the question."""

    can: Capabilities
    signs: bool = False
    reads: bool = False


_THIRD = GeminiModel(
    Capabilities(
        native_search=True,
        tools_with_native_search=True,
        thinking=True,
        vision=True,
        context=MILLION,
    ),
    signs=True,
    reads=True,
)
_SECOND = Capabilities(native_search=True, vision=True, context=MILLION)
_THINKING = Capabilities(native_search=True, thinking=True, vision=True, context=MILLION)
_PLAIN = GeminiModel(Capabilities(tools=False, vision=True))

UNKNOWN = GeminiModel(Capabilities(native_search=True, tools_with_native_search=True), signs=True)
BY_PREFIX: dict[str, GeminiModel] = {
    "gemini-": _THIRD,
    "gemini-1": GeminiModel(Capabilities(vision=True, context=MILLION)),
    "gemini-2": GeminiModel(_SECOND),
    "gemini-2.0-flash-lite": GeminiModel(Capabilities(vision=True, context=MILLION)),
    "gemini-2.5": GeminiModel(_THINKING, reads=True),
    "gemini-2.5-flash-image": _PLAIN,
    "gemini-2.5-flash-lite": GeminiModel(_SECOND, reads=True),  # thinks only when told how much
    "gemma-": _PLAIN,
    "learnlm-": GeminiModel(Capabilities(vision=True)),
}
_LONGEST_FIRST = sorted(BY_PREFIX, key=len, reverse=True)

# Offered without asking the server; any other name works too.
OFFERED = (
    "gemini-3.5-flash",
    "gemini-3.1-pro-preview",
    "gemini-3-flash-preview",
    "gemini-2.5-pro",
    "gemini-2.5-flash",
    "gemini-2.5-flash-lite",
)
_OTHER_KINDS = (
    *("image", "tts", "audio", "live", "embedding", "robotics", "computer-use", "veo", "omni"),
    *("native", "lyria", "translate", "deep-research"),
)


def model(name: str) -> GeminiModel:
    """The entry for a model's name; UNKNOWN for a tuned model."""
    name = short(name)
    prefix = next((p for p in _LONGEST_FIRST if name.startswith(p)), None)
    return BY_PREFIX[prefix] if prefix else UNKNOWN


def short(name: str) -> str:
    """The name without the `models/` with which the server lists it."""
    return name.removeprefix("models/")


def answers_questions(name: str) -> bool:
    """True if a listed model belongs in a picker for conversations."""
    return name.startswith("gemini-") and not any(word in name for word in _OTHER_KINDS)
