"""Passages found by meaning: fused with the words, told, and never in the way of a search."""

from __future__ import annotations

import json
import random
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from searchloop.search_backend.api.app import create_app
from searchloop.search_backend.api.embeddings import embedder, prefixed
from searchloop.search_backend.library import Library
from searchloop.search_backend.library.meaning import REST, Meaning, Vector, packed
from searchloop.search_backend.settings import SearchSettings
from searchloop.search_backend.types import EngineError, Page, SettingError
from tests.fakes import FakeServer, Received, Reply, json_reply
from tests.waiting import until

# What a model knows: words of one meaning in three languages.
CONCEPTS = ("harbour hafen 港口", "whale wal 鲸鱼", "bread brot 面包", "storm sturm 风暴")
TEXTS = {
    "harbour.txt": "The harbour of Vik lies open to the west.",
    "whale.txt": "A whale came ashore.",
    "bread.txt": "Bread is baked before dawn.",
    "storm.txt": "The storm took three roofs.",
}
ASKED = [("Wo ist der Hafen?", "harbour.txt"), ("面包", "bread.txt"), ("Sturm", "storm.txt")]


def vector(text: str) -> list[float]:
    """The meaning of a text, with a little noise of its own in the rest."""
    noise, low = random.Random(text), text.lower()
    known = [1.0 if any(w in low for w in each.split()) else -0.02 for each in CONCEPTS]
    return [each for each in known for _ in range(8)] + [
        noise.uniform(-0.05, 0.05) for _ in "x" * 8
    ]


class Model:
    """An embedding server; `fails` and `refused` are statuses of its answers."""

    def __init__(self) -> None:
        self.fails, self.refused, self.long = 0, "", 400
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []

    def __call__(self, received: Received) -> Reply:
        """POST /v1/embeddings, with the parts of the answer in any order."""
        assert received.path == "/v1/embeddings"
        texts = json.loads(received.body)["input"]
        self.headers.append(dict(received.headers))
        if self.fails:
            return json_reply({"error": {"message": "model not loaded"}}, self.fails)
        if self.refused and any(self.refused in text for text in texts):
            return json_reply({"error": {"message": "input too long"}}, self.long)
        self.asked += texts
        rows = [{"index": n, "embedding": vector(text)} for n, text in enumerate(texts)]
        return json_reply({"data": rows[::-1]})


@pytest.fixture
def model() -> Model:
    """What the server does."""
    return Model()


@pytest.fixture
def server(model: Model) -> Iterator[FakeServer]:
    """An embedding server on this machine."""
    with FakeServer(model) as running:
        yield running


class ByHand(Meaning):
    """Works only when a test tells it to."""

    def start(self) -> None:
        """Does nothing."""


def opened(
    home: Path,
    server: FakeServer,
    name: str = "tiny",
    seconds: float = 5.0,
    clock: Callable[[], float] = lambda: 0.0,
    **env: str,
) -> Library:
    """The library of this home with that model."""
    env |= {"SEARCHLOOP_EMBEDDINGS": name, "EMBEDDINGS_BASE_URL": f"{server.url}/v1"}
    made = embedder(SearchSettings.from_mapping(env, home=home))
    assert made is not None
    library = Library(home, dict)
    named, embed = made
    library.meaning = ByHand(library._index, named, lambda t, a, _: embed(t, a, seconds), clock)
    return library


def filled(home: Path, server: FakeServer, **more: Any) -> tuple[Library, Meaning]:
    """A library of TEXTS with their vectors."""
    (home / "notes").mkdir()
    for name, text in TEXTS.items():
        (home / "notes" / name).write_text(text, "utf-8")
    library = opened(home, server, **more)
    library.add(home / "notes")
    assert library.meaning is not None
    library.meaning.embed_all()
    return library, library.meaning


def first(library: Library, question: str) -> str:
    """The name of the best document."""
    hits = library.search(question, 3)
    return hits[0].url.rpartition("/")[2] if hits else ""


def count(home: Path) -> tuple[int, int]:
    """The vectors that are stored, and the passages."""
    with sqlite3.connect(home / "library.sqlite3") as connection:
        query = "SELECT (SELECT count(*) FROM vectors), (SELECT passages FROM totals)"
        found: tuple[int, int] = connection.execute(query).fetchone()
    return found


def test_a_question_in_one_language_finds_a_text_in_another(
    tmp_path: Path, server: FakeServer, model: Model
) -> None:
    """Off by default; with a model each question finds its text, and words still count."""
    library, _ = filled(tmp_path, server)
    off = Library(tmp_path, dict)
    for question, name in ASKED:
        assert first(off, question) == ""
        assert first(library, question) == name
    assert first(library, "roofs") == "storm.txt"
    within = library.search("Hafen", 9, ["/elsewhere", "notes"])
    assert within[0].url.endswith("harbour.txt")
    assert "Wo ist der Hafen?" in model.asked
    # Nothing is asked twice.
    before = len(model.asked)
    assert library.meaning is not None
    library.meaning.embed_all()
    assert len(model.asked) == before


def test_it_is_told(tmp_path: Path, server: FakeServer, model: Model) -> None:
    """The trail says by what was found, and why words alone answer; the search goes on."""
    now = [0.0]
    library, _ = filled(tmp_path, server, clock=lambda: now[0])
    app = create_app(SearchSettings(tmp_path, ("library",)), library=library)

    def ask(query: str) -> Any:
        return app.test_client().post("/api/web-search", json={"query": query}).get_json()

    [attempt] = ask("Hafen")["attempts"]
    assert (attempt["status"], attempt["how"]) == ("ok", "by words and meaning")
    model.fails = 503
    asked = len(server.requests)
    for _ in range(3):
        answer = ask("harbour")
        assert answer["results"][0]["url"].endswith("harbour.txt")
    [attempt] = answer["attempts"]
    assert attempt["how"].startswith("by words alone: The embedding server")
    assert len(server.requests) == asked + 1  # it is left alone for a while
    now[0] += REST
    model.fails = 0
    assert ask("Hafen")["attempts"][0]["how"] == "by words and meaning"
    plain = create_app(SearchSettings(tmp_path, ("library",))).test_client()
    told = plain.post("/api/web-search", json={"query": "harbour"}).get_json()
    assert "how" not in told["attempts"][0]


@pytest.mark.parametrize("end", ["stall", "reset"])
def test_a_server_that_breaks_off_holds_no_search(tmp_path: Path, end: Any) -> None:
    """Neither a search nor a background pass."""
    with FakeServer(lambda _: Reply(before=end)) as server:
        library, _ = filled(tmp_path, server, seconds=0.05)
        assert count(tmp_path) == (0, 4)
        again = opened(tmp_path, server, seconds=0.05)
        for each in (library, again):
            assert first(each, "harbour") == "harbour.txt"
            assert each.meaning is not None
            assert each.meaning.told().startswith("by words alone")


def test_vectors_go_with_their_passages_and_their_model(
    tmp_path: Path, server: FakeServer, model: Model
) -> None:
    """Changed, removed and forgotten texts leave none; another model begins anew."""
    library, meaning = filled(tmp_path, server)
    assert count(tmp_path) == (4, 4)
    (tmp_path / "notes" / "bread.txt").write_text("The Wal is a mammal.", "utf-8")
    (tmp_path / "notes" / "whale.txt").unlink()
    library.add(tmp_path / "notes")
    assert count(tmp_path) == (2, 3)
    meaning.embed_all()
    assert (count(tmp_path), first(library, "鲸鱼")) == ((3, 3), "bread.txt")
    page = Page("https://a.example", "https://a.example", "Brot", "Brot und Salz. " * 9)
    library.remember(page, "chat")
    meaning.embed_all()
    assert count(tmp_path) == (4, 4)
    library.forget("chat")
    assert count(tmp_path) == (3, 3)
    other = opened(tmp_path, server, "e5-other")
    assert other.meaning is not None
    assert first(other, "鲸鱼") == ""  # vectors of two models cannot be compared
    other.meaning.embed_all()
    assert (count(tmp_path), first(other, "鲸鱼")) == ((3, 3), "bread.txt")
    assert any(text.startswith("passage: ") for text in model.asked)
    library.remove("notes")
    assert count(tmp_path) == (0, 0)


@pytest.mark.parametrize("status", [400, 413, 500])
def test_a_passage_that_is_refused_keeps_none_from_the_rest(
    tmp_path: Path, server: FakeServer, model: Model, status: int
) -> None:
    """It is tried alone, then left to the words; a server that refuses all is told."""
    model.refused, model.long = "whale", status
    library, made = filled(tmp_path, server)
    assert (count(tmp_path), first(library, "Brot")) == ((4, 4), "bread.txt")
    assert first(library, "whale") == "whale.txt"
    assert made.told() == "by words and meaning"  # a question that is refused rests nobody
    model.fails = 401
    other = opened(tmp_path, server, "x", EMBEDDINGS_API_KEY="sk-canary-123456")
    assert other.meaning is not None
    other.meaning.embed_all()
    assert model.headers[-1]["authorization"] == "Bearer sk-canary-123456"
    assert "canary" not in other.meaning.told()


def test_what_is_removed_while_the_server_works_gets_no_vector(tmp_path: Path) -> None:
    """The text of a vector is compared when it is stored."""
    (tmp_path / "a.txt").write_text("One.")
    (tmp_path / "b.txt").write_text("Two.")
    library = Library(tmp_path / "home", dict)
    for name in "ab":
        library.add(tmp_path / f"{name}.txt")

    def embed(texts: Any, asked: bool, seconds: float) -> list[Vector]:
        library.remove(tmp_path / "a.txt")
        return [(1.0, -1.0)] * len(texts)

    Meaning(library._index, "m", embed).embed_all()
    assert count(tmp_path / "home") == (1, 1)


def test_the_thread_embeds_by_itself(tmp_path: Path, server: FakeServer) -> None:
    """The backend starts it; it ends with the process."""
    (tmp_path / "a.txt").write_text("The harbour.")
    Library(tmp_path, dict).add(tmp_path / "a.txt")
    env = {"SEARCHLOOP_EMBEDDINGS": "tiny", "SEARCH_ENGINES": "library"}
    env["EMBEDDINGS_BASE_URL"] = f"{server.url}/v1"
    create_app(SearchSettings.from_mapping(env, home=tmp_path))
    until(lambda: count(tmp_path) == (1, 1))
    threads = [each for each in threading.enumerate() if each.name == "library-meaning"]
    assert threads
    assert all(each.daemon for each in threads)


@pytest.mark.parametrize(
    ("name", "address", "said"),
    [
        ("", "http://127.0.0.1:1/v1", None),
        ("nomic-embed-text", "", "nomic-embed-text http://127.0.0.1:11434/v1"),
        ("bge-m3:latest", "http://localhost:11434/v1", "bge-m3:latest http://localhost:11434/v1"),
        ("e5", "https://models.example/v1/", "e5 https://models.example/v1"),
        ("e5", "models.example/v1", SettingError),
        ("e5", "file:///etc/passwd", SettingError),
        ("e5", "http://", SettingError),
    ],
)
def test_the_setting(tmp_path: Path, name: str, address: str, said: Any) -> None:
    """A model of the Ollama here, or one at an address; elsewhere means not offline."""
    env = {"SEARCHLOOP_EMBEDDINGS": name, "EMBEDDINGS_BASE_URL": address, "SEARCHLOOP_OFFLINE": "1"}
    settings = SearchSettings.from_mapping(env, home=tmp_path)
    if said is SettingError:
        with pytest.raises(SettingError, match="EMBEDDINGS_BASE_URL"):
            embedder(settings)
        return
    found = embedder(settings)
    assert (found and found[0]) == said
    if found and "https" in address:
        with pytest.raises(EngineError, match="OFFLINE"):
            found[1](["x"], True, 1.0)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"data": []},
        {"data": [{"index": 0, "embedding": []}]},
        {"data": [{"index": 1, "embedding": [1.0]}]},
        {"data": [{"index": 0, "embedding": ["x"]}]},
        {"data": [{"index": 0, "embedding": [float("nan")]}]},
        {"data": [{"index": 0, "embedding": [1e999]}]},
        [],
        "no",
    ],
)
def test_an_answer_that_is_none(tmp_path: Path, answer: Any) -> None:
    """It is an error of the server, whatever it is."""
    with FakeServer([json_reply(answer)]) as server:
        env = {"SEARCHLOOP_EMBEDDINGS": "m", "EMBEDDINGS_BASE_URL": f"{server.url}/v1"}
        found = embedder(SearchSettings.from_mapping(env, home=tmp_path))
        assert found is not None
        with pytest.raises(EngineError):
            found[1](["x"], True, 5.0)


def test_prefixes() -> None:
    """Models that were trained with them get them."""
    assert prefixed("nomic-embed-text:v1.5", "a", True) == "search_query: a"
    assert prefixed("multilingual-e5-small", "a", False) == "passage: a"
    assert prefixed("bge-m3", "a", True) == "a"


def test_bytes_keep_the_order() -> None:
    """The products of packed vectors order as the exact ones do."""
    draw = random.Random(3)
    vectors = [[draw.gauss(0, 1) for _ in range(384)] for _ in range(200)]
    asked = vectors[17]

    def product(a: Any, b: Any) -> float:
        return float(sum(x * y for x, y in zip(a, b, strict=True)))

    def order(scores: list[float]) -> list[int]:
        return sorted(range(len(scores)), key=lambda n: -scores[n])[:10]

    exact = [product(asked, v) / product(v, v) ** 0.5 for v in vectors]
    signed = [[b - 256 * (b > 127) for b in packed(v)[1]] for v in vectors]
    rough = [product(signed[17], each) for each in signed]
    assert order(exact)[:1] == order(rough)[:1] == [17]
    assert len({*order(exact)} & {*order(rough)}) >= 8
