"""The rules by which the Gemini API accepts or refuses a request, as far as its shape decides.

    check(body, url)     raises AssertionError with the server's rule

The model and the kind of server are read from the address; without one the rules of the newest
models hold. Both spellings of a field are accepted, because the server takes both. Signatures are
demanded in the current turn only: from the last content in which the user says something.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

TOP = {
    *("contents", "systemInstruction", "tools", "toolConfig", "generationConfig"),
    *("safetySettings", "cachedContent", "continuationToken", "modelArmorConfig", "labels"),
}
PAYLOADS = {
    *("text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode"),
    *("codeExecutionResult", "toolCall", "toolResponse", "quantumCall"),
}
# https://ai.google.dev/gemini-api/docs/image-understanding#supported-formats
BLOBS = {*(f"image/{kind}" for kind in ("png", "jpeg", "webp", "heic", "heif")), "application/pdf"}
SIDE = {"thought", "thoughtSignature", "partMetadata", "videoMetadata"}
SERVER_TOOLS = {"googleSearch", "urlContext", "codeExecution", "googleMaps", "fileSearch"}
SCHEMA = {
    *("type", "format", "title", "description", "nullable", "default", "enum", "example", "items"),
    *("minItems", "maxItems", "properties", "required", "propertyOrdering", "minProperties"),
    *("maxProperties", "minimum", "maximum", "minLength", "maxLength", "pattern", "anyOf"),
}
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:\-]{0,127}")

Body = Mapping[str, Any]


def check(body: Body, url: str = "models/gemini-3:") -> None:
    """Raises AssertionError when the server would answer this body with 400."""
    model = url.partition("models/")[2].partition(":")[0]
    body = camel(body)
    assert set(body) <= TOP, f"Unknown name {sorted(set(body) - TOP)}: Cannot find field."
    contents = body.get("contents")
    assert contents, "contents is not specified"
    for content in contents:
        _content(content)
    assert contents[0].get("role", "user") == "user", "a conversation begins with the user"
    assert contents[-1].get("role", "user") == "user", "a request ends with a user turn"
    _pairs(contents, older=model.startswith(("gemini-1", "gemini-2")))
    _tools(body, model, vertex="aiplatform" in url)
    _served(contents, body)
    if not model.startswith(("gemini-1", "gemini-2")):
        _signatures(contents)


def camel(value: Any) -> Any:
    """The JSON with the field names of the wire; what a user wrote is left as it is."""
    if isinstance(value, list):
        return [camel(item) for item in value]
    if not isinstance(value, dict):
        return value
    opaque = ("args", "response", "parameters", "parametersJsonSchema", "responseJsonSchema")
    found = {}
    for key, item in value.items():
        name = re.sub(r"_([a-z])", lambda m: m[1].upper(), key)
        found[name] = item if name in opaque else camel(item)
    return found


def _content(content: Body) -> None:
    assert content.get("role", "user") in ("user", "model"), "Please use a valid role: user, model."
    assert content.get("parts"), "contents.parts must not be empty."
    for part in content["parts"]:
        payloads = set(part) & PAYLOADS
        assert set(part) <= PAYLOADS | SIDE, f"Unknown name {sorted(set(part))}: Cannot find field."
        assert len(payloads) == 1, "oneof field 'data' must have one initialized field"
        if payloads == {"text"}:
            assert isinstance(part["text"], str)
            assert part["text"] or part.get("thoughtSignature"), "part without text"
        if "inlineData" in part:
            assert content.get("role", "user") == "user", "files come from the user"
            blob = part["inlineData"]
            assert set(blob) == {"mimeType", "data"}, "a Blob has mimeType and data"
            assert blob["mimeType"] in BLOBS, f"Unsupported MIME type: {blob['mimeType']}"
            assert base64.b64decode(blob["data"], validate=True), "Invalid value: Base64 failed"
        signature = part.get("thoughtSignature")
        if signature is not None:
            _decodes(signature)
        if "functionCall" in part:
            assert content["role"] == "model", "only the model calls functions"
            assert NAME.fullmatch(part["functionCall"]["name"]), "Invalid function name."
            assert isinstance(part["functionCall"].get("args", {}), dict)
        if "functionResponse" in part:
            assert content["role"] == "user", "function responses come from the user"
            assert isinstance(part["functionResponse"]["response"], dict)


def _decodes(signature: str) -> None:
    text = signature.replace("-", "+").replace("_", "/")
    try:
        base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except binascii.Error as error:
        raise AssertionError("Invalid value at 'thought_signature': Base64 failed") from error


def _pairs(contents: Sequence[Body], *, older: bool) -> None:
    waiting: list[Body] = []
    for number, content in enumerate(contents):
        answers = [p["functionResponse"] for p in content["parts"] if "functionResponse" in p]
        if content.get("role", "user") == "user":
            rest = len(answers) < len(waiting) and older  # older models take them one by one
            assert rest or len(answers) == len(waiting), (
                "Please ensure that the number of function response parts is equal to the number "
                "of function call parts of the function call turn."
            )
            for call, answer in zip(waiting, answers, strict=False):
                assert call["name"] == answer["name"], "a response has another name than its call"
                assert call.get("id") == answer.get("id"), "a response has another id than its call"
            waiting = waiting[len(answers) :]
            continue
        assert not waiting, "a function call turn is followed by its function responses"
        waiting = [p["functionCall"] for p in content["parts"] if "functionCall" in p]
        if waiting:
            before = contents[number - 1].get("role", "user")
            assert before == "user", (
                "Please ensure that function call turn comes immediately after a user turn or "
                "after a function response turn."
            )
    assert not waiting, "function calls without function responses"


def _tools(body: Body, model: str, *, vertex: bool) -> None:
    tools = body.get("tools") or []
    served = {name for tool in tools for name in tool if name in SERVER_TOOLS}
    declared = [f for tool in tools for f in tool.get("functionDeclarations", ())]
    names = [f["name"] for f in declared]
    assert len(set(names)) == len(names), "Duplicate function declaration found"
    for function in declared:
        assert NAME.fullmatch(function["name"]), "Invalid function name."
        assert not {"parameters", "parametersJsonSchema"} <= set(function)
        for word in _words(function.get("parameters") or {}):
            assert word in SCHEMA, f'Invalid JSON payload received. Unknown name "{word}"'
    config = body.get("toolConfig") or {}
    mixed = bool(served and declared)
    if mixed and model.startswith(("gemini-1", "gemini-2")):
        raise AssertionError("Tool use with function calling is unsupported by the model.")
    assert not mixed or vertex or config.get("includeServerSideToolInvocations"), (
        "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools "
        "with Function calling."
    )
    calling = config.get("functionCallingConfig") or {}
    assert calling.get("mode", "AUTO") in ("AUTO", "ANY", "NONE", "VALIDATED")
    if calling.get("allowedFunctionNames"):
        assert calling["mode"] in ("ANY", "VALIDATED")
        assert set(calling["allowedFunctionNames"]) <= set(names)


def _words(schema: Body) -> Iterator[str]:
    for word, value in schema.items():
        yield word
        if word == "properties":
            for inner in value.values():
                yield from _words(inner)
        elif word == "items":
            yield from _words(value)
        elif word == "anyOf":
            for inner in value:
                yield from _words(inner)


def _served(contents: Sequence[Body], body: Body) -> None:
    """What the server did itself comes back only with the flag, and in pairs."""
    flag = (body.get("toolConfig") or {}).get("includeServerSideToolInvocations")
    for content in contents:
        running: dict[str, str] = {}
        for part in content["parts"]:
            if "toolCall" in part or "toolResponse" in part:
                assert flag, "tool invocations without include_server_side_tool_invocations"
            if "toolCall" in part:
                running[part["toolCall"]["id"]] = part["toolCall"]["toolType"]
            if "toolResponse" in part:
                done = part["toolResponse"]
                assert running.pop(done["id"], None) == done["toolType"], "response without call"
        assert not running, "a tool call of the server without its response"


def _signatures(contents: Sequence[Body]) -> None:
    said = [
        number
        for number, content in enumerate(contents)
        if content.get("role", "user") == "user"
        and any("functionResponse" not in part for part in content["parts"])
    ]
    for number, content in enumerate(contents[said[-1] :] if said else contents):
        calls = [part for part in content["parts"] if "functionCall" in part]
        if calls:
            name = calls[0]["functionCall"]["name"]
            assert calls[0].get("thoughtSignature"), (
                "Function call is missing a thought_signature in functionCall parts: "
                f"default_api:{name}, position {number}."
            )
