"""Vectors of texts from the embedding model that the user has named for the library.

POST /v1/embeddings is what nearly all servers of models have in common. Many models want to be told
whether a text is a question or a passage; a prefix says so.
https://platform.openai.com/docs/api-reference/embeddings
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from ipaddress import ip_address
from math import isfinite
from urllib.parse import urlsplit

from searchloop.search_backend.fetch.client import run
from searchloop.search_backend.fetch.engine_client import EngineHttp
from searchloop.search_backend.library.meaning import Embed, Vector
from searchloop.search_backend.plugin import HttpResponse, post, without_keys
from searchloop.search_backend.plugin.answers import checked, rows
from searchloop.search_backend.settings import SearchSettings
from searchloop.search_backend.types import EngineError, SettingError

TITLE = "The embedding server"
HERE = "http://127.0.0.1:11434/v1"
# Name of a model, prefix of a question, prefix of a passage: as the models' cards ask for them.
_PREFIXES = (
    (r"nomic-embed", "search_query: ", "search_document: "),
    (r"\be5\b", "query: ", "passage: "),
    (r"embeddinggemma", "task: search result | query: ", "title: none | text: "),
    (r"qwen3-embed", "Instruct: Find passages that answer the question\nQuery: ", ""),
    (
        r"mxbai-embed|arctic-embed|bge-(small|base|large)-en",
        *("Represent this sentence for searching relevant passages: ", ""),
    ),
)


def embedder(settings: SearchSettings) -> tuple[str, Embed] | None:
    """Returns the model's name with its address, and what asks it; None where none is named.

    Raises SettingError for an address that cannot be used.
    """
    model = settings.keys.get("SEARCHLOOP_EMBEDDINGS", "")
    if not model:
        return None
    url = (settings.keys.get("EMBEDDINGS_BASE_URL") or HERE).rstrip("/")
    if not url.startswith(("http://", "https://")) or not urlsplit(url).hostname:
        what = f"EMBEDDINGS_BASE_URL is no web address: {url[:100]!r}."
        raise SettingError("config", what, f"Write one such as {HERE}")
    key, http = settings.keys.get("EMBEDDINGS_API_KEY", ""), EngineHttp()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    away = settings.offline and not _is_here(urlsplit(url).hostname or "")

    def embed(texts: Sequence[str], asked: bool, seconds: float) -> list[Vector]:
        if away:
            raise EngineError("network", f"SEARCHLOOP_OFFLINE is on, and {url} is elsewhere.")
        body = {"model": model, "input": [prefixed(model, text, asked) for text in texts]}
        try:
            answer = run(
                http.send(post(f"{url}/embeddings", body, headers), TITLE), timeout=seconds
            )
            return vectors(answer, len(texts))
        except TimeoutError:
            raise EngineError("network", f"{TITLE} gave no answer within {seconds:g} s.") from None
        except EngineError as error:
            raise EngineError(error.kind, without_keys(error.message, [key]), "") from error

    return f"{model} {url}", embed


def prefixed(model: str, text: str, asked: bool) -> str:
    """Returns a text as this model wants it; `asked` for a question."""
    for pattern, question, passage in _PREFIXES:
        if re.search(pattern, model.lower()):
            return (question if asked else passage) + text
    return text


def vectors(response: HttpResponse, count: int) -> list[Vector]:
    """Reads an answer, whose parts may come in any order. Raises EngineError."""
    if response.status == 500:  # what some say of a text that is too long: not that they are down
        response = replace(response, status=400)
    found = rows(checked(response, TITLE), "data", title=TITLE)
    try:
        parts = {int(each["index"]): tuple(map(float, each["embedding"])) for each in found}
        every = [parts[n] for n in range(count) if all(map(isfinite, parts[n]))]
    except (KeyError, TypeError, ValueError, OverflowError):
        every = []
    if len(every) != count or len(set(map(len, every))) != 1 or not every[0]:
        raise EngineError("parse", f"{TITLE} did not answer with {count} vectors.")
    return every


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
