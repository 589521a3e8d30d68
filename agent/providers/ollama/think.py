"""What a request says of thinking: OLLAMA_THINK in the form that this model takes.

A request that asks a model to think which cannot is refused, so nothing is said of those. gpt-oss
takes levels only and never stops thinking altogether; all others take yes or no.

https://github.com/ollama/ollama/blob/main/docs/capabilities/thinking.mdx
"""

from __future__ import annotations

from agent.providers.ollama.catalog import Installed
from agent.providers.ollama.config import Think

_LEVELS: dict[Think, str] = {"off": "low", "on": "medium"}


def think_value(wish: Think | None, model: Installed | None) -> bool | str | None:
    """The value of `think`, None for a request that leaves it to the server."""
    if wish is None:
        return None
    if model is None or model.capabilities is None or "thinking" not in model.capabilities:
        return None
    if takes_levels(model):
        return _LEVELS.get(wish, wish)
    return wish != "off"


def takes_levels(model: Installed) -> bool:
    """Whether it is one of those that think in levels."""
    return "gptoss" in (model.family + model.name).lower().replace("-", "")
