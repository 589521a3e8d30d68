"""The Gemini API as a server speaks it: chunks that are whole responses, and no terminal event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.chaos.dialects import KEY, PAGE, Asked, Dialect, dump, parsed
from tests.fakes import Reply, json_reply
from tests.rules_gemini import check

_NAMES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}
_TOOLS = ("googleSearch", "urlContext", "googleSearchRetrieval")


class Gemini(Dialect):
    """See `Dialect`."""

    name = "gemini"
    models = ("gemini-3.5-flash", "gemini-2.5-flash")
    searcher = models[0]
    home = "/v1beta"
    says_when = False
    unknown = b'data: {"newKind": {"x": [1]}, "responseId": "r"}\n\n'

    def check(self, body: Mapping[str, Any], path: str) -> None:
        check(body, path)

    def conversation(self, body: Mapping[str, Any]) -> list[Any]:
        return [(turn["role"], part) for turn in body["contents"] for part in turn["parts"]]

    def searches(self, body: Mapping[str, Any]) -> list[str]:
        return [name for tool in body.get("tools") or [] for name in _TOOLS if name in tool]

    def text(self, *pieces: str, thinking: str = "") -> list[bytes]:
        chunks = [_chunk({"text": thinking, "thought": True})] if thinking else []
        chunks += [_chunk({"text": piece}) for piece in pieces]
        return [*chunks, _chunk({"text": "", **self._signed()}, finishReason="STOP")]

    def calls(self, *asked: Asked, text: str = "", thinking: str = "") -> list[bytes]:
        chunks = [_chunk({"text": thinking, "thought": True})] if thinking else []
        chunks += [_chunk({"text": text})] if text else []
        for number, each in enumerate(asked):
            call = {"id": f"fn{next(self._ids)}", "name": each.name}
            part = {"functionCall": {**call, "args": parsed(each.arguments)}}
            chunks.append(_chunk(part if number else {**part, **self._signed()}))
        return [*chunks, _chunk({"text": ""}, finishReason="STOP")]

    def _signed(self) -> dict[str, str]:
        return {"thoughtSignature": f"c2ln{next(self._ids):04d}"}

    def searched(self, *pieces: str) -> list[bytes]:
        own = {"toolType": "GOOGLE_SEARCH_WEB", "id": f"srv{next(self._ids)}"}
        call = {"toolCall": {**own, "args": {"queries": ["tides"]}}, **self._signed()}
        answer = {"toolResponse": {**own, "response": {}}, **self._signed()}
        chunks = [_chunk({"text": "Look it up.", "thought": True}), _chunk(call), _chunk(answer)]
        chunks += [_chunk({"text": piece}) for piece in pieces]
        whole = "".join(pieces).encode()
        segment = {"startIndex": 0, "endIndex": len(whole), "text": whole.decode()}
        grounding = {
            "webSearchQueries": ["tides"],
            "groundingChunks": [{"web": {"uri": PAGE, "title": "tides.example"}}],
            "groundingSupports": [{"segment": segment, "groundingChunkIndices": [0]}],
        }
        end = {"finishReason": "STOP", "groundingMetadata": grounding}
        return [*chunks, _chunk({"text": "", **self._signed()}, **end)]

    def both(self, asked: Asked) -> list[bytes]:
        first, call, answer, *_ = self.searched("x")
        return [first, call, answer, *self.calls(asked)]

    def cut_short(self, asked: Asked) -> list[bytes]:
        """Calls come whole; what the limit cut off is not there."""
        return [_chunk({"text": "I will"}), _chunk(finishReason="MAX_TOKENS")]

    def trouble(self) -> bytes:
        error = {"code": 503, "message": f"Overloaded, {KEY}", "status": "UNAVAILABLE"}
        return b"data: %b\n\n" % dump({"error": error})

    def error(self, status: int, headers: Mapping[str, str] | None = None) -> Reply:
        name = _NAMES.get(status, "INTERNAL" if status >= 500 else "INVALID_ARGUMENT")
        error = {"code": status, "message": f"No, not with {KEY}.", "status": name}
        return json_reply({"error": error}, status, headers)

    def spent(self) -> Reply:
        failure = {"@type": "type.googleapis.com/google.rpc.QuotaFailure"}
        day = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
        details = [{**failure, "violations": [{"quotaId": day, "quotaValue": "250"}]}]
        error = {"code": 429, "message": "Quota.", "status": _NAMES[429], "details": details}
        return json_reply({"error": error}, 429)

    def refuses_search(self) -> Reply | None:
        error = {
            "code": 400,
            "message": "Search Grounding is not supported.",
            "status": _NAMES[400],
        }
        return json_reply({"error": error}, 400)


def _chunk(part: Mapping[str, Any] | None = None, **candidate: Any) -> bytes:
    content = {"content": {"role": "model", "parts": [part]}} if part is not None else {}
    counts = {"promptTokenCount": 9, "candidatesTokenCount": 5, "totalTokenCount": 14}
    whole = {"candidates": [{**content, **candidate, "index": 0}], "usageMetadata": counts}
    return b"data: %b\n\n" % dump(whole)
