"""What every Python client is tried with; its script beside this file says only how it asks.

`ask(at, question, stream=..., search=..., tool=...)` returns the whole text, its pieces (one, if it
was not streamed) and the cited addresses. With `tool` the client runs `get_weather` by itself.
`leave(at, question)` reads the beginning of a stream and hangs up. What comes out is one line of
JSON: the version, and for each check "ok" or what went wrong.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from types import SimpleNamespace
from typing import Any

WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
NO_PLACE = "-"  # of a check that says nothing about a client: MCP streams no answer
SWITCH = "What does the search switch decide?"
Told = tuple[str, int, list[str]]


def get_weather(city: str) -> str:
    """Tells the weather of a city."""
    return f"sunny in {city}"


def must(true: object, words: Any) -> None:
    """Raises an error with these words unless something is so."""
    if not true:
        raise AssertionError(str(words)[:300])


def version_of(program: str) -> str:
    """Returns the version of a Python package, or of a program on the PATH."""
    try:
        return version(program)
    except PackageNotFoundError:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60)
        return re.findall(r"\d+(?:\.\d+)+", said.stdout)[0]


def chat_ways(create: Callable[..., Any]) -> Callable[..., Told]:
    """Returns how a client of Chat Completions asks, whose `create(at, messages, **more)` does."""

    def notes_of(said: Any) -> list[Any]:
        notes = getattr(said, "annotations", None) or ()
        return [n if isinstance(n, dict) else n.model_dump() for n in notes]

    def ask(
        at: Any, question: str, stream: bool = False, search: bool = False, tool: bool = False
    ) -> Told:
        more: dict[str, Any] = {"web_search_options": {}} if search else {}
        if tool:
            function = {"name": "get_weather", "parameters": WEATHER}
            more["tools"] = [{"type": "function", "function": function}]
        messages: list[Any] = [{"role": "user", "content": question}]
        if stream:
            pieces = create(at, messages, stream=True, **more)
            deltas = [piece.choices[0].delta for piece in pieces if piece.choices]
            said = [delta.content for delta in deltas if delta.content]
            notes = [note for delta in deltas for note in notes_of(delta)]
            return "".join(said), len(said), [note["url_citation"]["url"] for note in notes]
        message = create(at, messages, **more).choices[0].message
        while message.tool_calls:
            messages.append(message)
            for call in message.tool_calls:
                result = get_weather(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
            message = create(at, messages, **more).choices[0].message
        return message.content, 1, [note["url_citation"]["url"] for note in notes_of(message)]

    return ask


def try_all(package: str, ask: Callable[..., Told], leave: Callable[..., None], *no: str) -> None:
    """Tries a client with everything but what `no` names, and prints what came of it."""
    env = os.environ
    at = SimpleNamespace(base=env["BASE"], key=env["KEY"], model=env["MODEL"])

    def answer() -> None:
        told = ask(at, "Say hello.")
        must(told[0] == "Hello.", told)

    def stream() -> None:
        told = ask(at, "Say hello.", stream=True)
        must(told[0] == "Hello." and told[1] > 1, told)

    def search() -> None:
        for streamed in (False, True):
            told = ask(at, SWITCH, search=True, stream=streamed)
            must("[1]" in told[0] and any("library://docs/" in url for url in told[2]), told)

    def tools() -> None:
        told = ask(at, "Is it warm in Paris?", tool=True)
        must(told[0].endswith("is warm."), told)

    def stop() -> None:
        leave(at, "wait for ever")
        with urllib.request.urlopen(env["GONE"], timeout=60) as reply:
            must(json.load(reply), "the run went on after its client had left")

    def down() -> None:
        where = SimpleNamespace(**{**vars(at), "model": env["DOWN"]})
        must_fail(where, "ollama", "Say hello.")

    def off() -> None:
        where = SimpleNamespace(**{**vars(at), "base": env["OFF"]})
        must_fail(where, "switched off", SWITCH, search=True)

    def must_fail(where: Any, words: str, question: str, **more: Any) -> None:
        try:
            told = ask(where, question, **more)
        except Exception as error:
            must(words in str(error).lower(), repr(error))
        else:
            must(False, f"no error, but {told}")

    told = {"version": version_of(package)}
    for check in (answer, stream, search, tools, stop, down, off):
        name = check.__name__
        try:
            told[name] = NO_PLACE if name in no else check() or "ok"
        except BaseException as error:
            told[name] = f"{type(error).__name__}: {error}"[:400]
    sys.stdout.write(f"{json.dumps(told)}\n")
    sys.stdout.flush()
    os._exit(0)  # some clients leave threads behind
