"""The numbers that the GenAI conventions of OpenTelemetry ask of a client: times and tokens.

Names, units and bounds: https://github.com/open-telemetry/semantic-conventions-genai
(docs/gen-ai/gen-ai-metrics.md, status: development).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram, Meter

_SECONDS = tuple(0.01 * 2**n for n in range(14))
_LONG = tuple(0.1 * 2**n for n in range(13))
_COUNTS = tuple(4.0**n for n in range(14))
_ABOUT = ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "error.type")
_TOOL = ("gen_ai.tool.name", "gen_ai.tool.type", "gen_ai.agent.name", "error.type")


class Numbers:
    """Histograms; each is told what its span is told."""

    def __init__(self, meter: Meter) -> None:
        def made(name: str, what: str, bounds: tuple[float, ...], unit: str = "s") -> Histogram:
            return meter.create_histogram(
                f"gen_ai.{name}", unit, what, explicit_bucket_boundaries_advisory=bounds
            )

        self._chat = made("client.operation.duration", "GenAI operation duration.", _SECONDS)
        what = "Number of input and output tokens used."
        self._tokens = made("client.token.usage", what, _COUNTS, "{token}")
        what = "The end-to-end duration of a single agent invocation."
        self._agent = made("invoke_agent.duration", what, _LONG)
        what = "The duration of a single tool execution."
        self._tool = made("execute_tool.duration", what, _SECONDS)

    def chat(self, seconds: float, told: Mapping[str, Any], tokens: Mapping[str, int]) -> None:
        """A model was asked; `tokens` are what the provider counted for it."""
        about = _only(told, _ABOUT)
        self._chat.record(max(0.0, seconds), about)
        for kind in ("input", "output"):
            count = tokens.get(f"{kind}_tokens")
            if count is not None:
                self._tokens.record(count, {**about, "gen_ai.token.type": kind})

    def tool(self, seconds: float, told: Mapping[str, Any]) -> None:
        """A tool was called."""
        self._tool.record(max(0.0, seconds), _only(told, _TOOL))

    def agent(self, seconds: float, name: str, error: str) -> None:
        """A run is over."""
        failed = {"error.type": error} if error else {}
        self._agent.record(max(0.0, seconds), {"gen_ai.agent.name": name, **failed})


def _only(told: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: told[name] for name in names if name in told}
