"""The Responses API as xAI speaks it: two searches, and errors in a bare sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.chaos.dialects import KEY
from tests.chaos.dialects.openai import OpenAI
from tests.fakes import Reply, json_reply
from tests.rules_openai import check


class XAI(OpenAI):
    """See `Dialect`."""

    name = "xai"
    models = ("grok-4.5", "grok-4.3")
    searcher = models[0]

    def check(self, body: Mapping[str, Any], path: str) -> None:
        tools = [tool for tool in body.get("tools", ()) if tool["type"] != "x_search"]
        check({**body, "tools": tools} if tools else body)

    def searches(self, body: Mapping[str, Any]) -> list[str]:
        found = super().searches({**body, "tools": [_web(t) for t in body.get("tools", ())]})
        return found[:1]  # those of the web and of posts are one switch

    def error(self, status: int, headers: Mapping[str, str] | None = None) -> Reply:
        said = f"Incorrect API key provided: {KEY}." if status == 401 else f"No, not with {KEY}."
        return json_reply({"code": "Some fault", "error": said}, status, headers)

    def spent(self) -> Reply:
        error = {"code": "insufficient_quota", "message": "Your team has no credits left."}
        return json_reply({"error": error}, 429)

    def refuses_search(self) -> Reply | None:
        said = "Model grok-4.5 does not support the web_search tool."
        return json_reply({"code": "invalid-argument", "error": said}, 400)


def _web(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "web_search"} if tool["type"] == "x_search" else tool
