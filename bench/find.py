"""How fast folders are read and chats are found: `python -m bench.find [FILES [CHATS]]`.

Made texts with the word frequencies of a language (Zipf), in a temporary folder: FILES plain texts
of 150 words (default 20,000) are added to a library, read again unchanged, and searched; CHATS of
three turns (default 10,000) are indexed and searched. Times are of the wall and of the CPU.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median, quantiles

from searchloop.agent.log import EventLog
from searchloop.search_backend.library import Library

WORDS, LETTERS = 8_000, "abcdefghijklmnopqrstuvwxyz"
QUERIES = (1, 1, 2, 2, 3, 4)  # words of each query


class Words:
    """Makes texts and queries, the same in each run."""

    def __init__(self) -> None:
        self._luck = random.Random(1)
        self._words = [self._word() for _ in range(WORDS)]
        self._weights = [1 / (n + 1) for n in range(WORDS)]

    def _word(self) -> str:
        return "".join(self._luck.choices(LETTERS, k=self._luck.randint(3, 9)))

    def text(self, words: int) -> str:
        """Returns a text of so many words."""
        return " ".join(self._luck.choices(self._words, self._weights, k=words))

    def queries(self) -> list[str]:
        """Returns queries of one to four words that are neither the commonest nor the rarest."""
        return [
            " ".join(self._luck.sample(self._words[20:4_000], k))
            for k in QUERIES
            for _ in range(10)
        ]


@contextmanager
def timed(what: str, count: int) -> Iterator[None]:
    """Prints how many a second were done."""
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    rate = f"{count / wall:,.0f} a second, {count / cpu:,.0f} a second of CPU"
    print(f"{what}: {count:,} in {wall:.1f} s, {rate}")


def spread(what: str, seconds: list[float]) -> None:
    """Prints the median and the 95th percentile."""
    last = quantiles(seconds, n=20)[-1]
    print(f"{what}: median {median(seconds) * 1e3:.1f} ms CPU, p95 {last * 1e3:.1f} ms CPU")


def folders(home: Path, words: Words, count: int) -> None:
    """Reads and searches files."""
    for n in range(count):
        folder = home / "files" / f"{n // 200:03}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{n}.txt").write_text(words.text(150), "utf-8")
    library = Library(home / "home", dict)
    with timed("files added", count):
        assert library.add(home / "files").added == count
    with timed("files unchanged", count):
        assert library.add(home / "files").unchanged == count


def chats(home: Path, words: Words, count: int) -> None:
    """Indexes and searches chats."""
    with closing(EventLog(home / "sessions.sqlite3")) as log:
        for n in range(count):
            source = {"url": f"https://example.org/{n}", "title": words.text(4), "state": "found"}
            events: list[tuple[str, dict[str, object]]] = []
            for _ in range(3):
                events.append(("user_message", {"text": words.text(12)}))
                events.append(("message", {"text": words.text(150), "sources": [source]}))
            log.append(log.create_session(model="m:x").id, events)
        with timed("chats indexed", count):
            assert log.chat_search.index(float("inf"))
        taken = []
        for query in words.queries():
            began = time.process_time()
            log.find(query)
            taken.append(time.process_time() - began)
        spread("chats searched", taken)


def main() -> None:
    """Runs both."""
    files, sessions = (*map(int, sys.argv[1:3]), *(20_000, 10_000)[len(sys.argv) - 1 :])
    with tempfile.TemporaryDirectory() as folder:
        folders(Path(folder), Words(), files)
        chats(Path(folder), Words(), sessions)


if __name__ == "__main__":
    main()
