"""Finds passages by their meaning: vectors of an embedding model, made in the background.

A vector is stored twice: as the signs of its numbers, by which Python's own integers compare a
hundred thousand passages in a tenth of a second, and as bytes, by which the nearest are ordered. A
server that is down costs a search nothing for a minute: words alone answer.
"""

from __future__ import annotations

import heapq
import logging
import threading
import time
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from operator import mul

from searchloop.search_backend.library.index import MOST_PASSAGES, Index
from searchloop.search_backend.types import EngineError, SearchBackendError

Vector = tuple[float, ...]
# Texts, whether they are questions, and seconds to wait. Raises EngineError.
Embed = Callable[[Sequence[str], bool, float], list[Vector]]
BATCH, BATCH_SECONDS = 8, 120.0
ASKED_SECONDS = 3.0  # that a search waits for the vector of its question
REST = 60.0  # seconds for which a server that failed is left alone
PAUSE = 5.0  # seconds between looks for new passages
CANDIDATES, NEAREST = 300, 30
SHORT = 500  # characters of a question, and of a passage that was not taken as a whole
DOWN = ("network", "auth", "rate", "quota")  # kinds of errors that come with any text

_WITHOUT_VECTOR = f"""
SELECT t.rowid, d.title, t.headings, substr(d.text, t.begins + 1, t.ends - t.begins)
FROM terms t JOIN documents d ON d.id = t.rowid / {MOST_PASSAGES}
WHERE t.rowid > ? AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.row = t.rowid)
ORDER BY t.rowid LIMIT {BATCH}"""
# What was removed or replaced while the server worked gets no vector of its old text.
_PUT = f"""
INSERT OR REPLACE INTO vectors SELECT ?, ?, ? FROM terms t
JOIN documents d ON d.id = t.rowid / {MOST_PASSAGES}
WHERE t.rowid = ? AND substr(d.text, t.begins + 1, t.ends - t.begins) = ?"""
_log = logging.getLogger(__name__)


class Meaning:
    """The vectors of an index, of one `model`."""

    def __init__(
        self,
        index: Index,
        model: str,
        embed: Embed,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` gives monotonic seconds."""
        self._index, self._model, self._embed, self._clock = index, model, embed, clock
        self._rests_until = 0.0
        self._trouble = ""
        self._seen: tuple[object, ...] = ()
        self._lock, self._idle = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Starts to embed what has no vector, on a thread that ends with this process."""
        with self._lock:
            if self._thread is None:
                args = {"target": self._work, "name": "library-meaning", "daemon": True}
                self._thread = threading.Thread(**args)  # type: ignore[arg-type]
                self._thread.start()

    def _work(self) -> None:
        while True:
            if self._clock() >= self._rests_until:
                self.embed_all()
            self._idle.wait(PAUSE)

    def told(self) -> str:
        """Returns how a search goes on now: "by words and meaning", or why by words alone."""
        if self._clock() < self._rests_until:
            return f"by words alone: {self._trouble}"
        return "by words and meaning" + ("" if self._seen else ", as far as it is embedded yet")

    def near(self, text: str, within: str) -> list[int]:
        """Returns the rows of the passages nearest to a question, nearest first; none while the
        server does not answer. `within` is a condition in SQL on `row`."""
        if self._clock() < self._rests_until:
            return []
        try:
            [vector] = self._embed([text[:SHORT]], True, ASKED_SECONDS)
        except EngineError as error:
            if error.kind in DOWN:
                self._failed(error)
            return []
        signs, asked = packed(vector)
        wanted = int.from_bytes(signs)
        with self._index.open() as connection:
            query = "SELECT row, signs FROM vectors WHERE length(signs) = ? AND "
            query += "EXISTS (SELECT 1 FROM embedding WHERE model = ?) " + within
            rows = connection.execute(query, (len(signs), self._model))
            few = heapq.nsmallest(
                CANDIDATES,
                ((int.from_bytes(s) ^ wanted).bit_count() << 48 | row for row, s in rows),
            )
            numbers = ",".join(str(each & (1 << 48) - 1) for each in few)
            query = f"SELECT row, numbers FROM vectors WHERE row IN ({numbers})"
            found = connection.execute(query).fetchall()
        whole = array("b", asked)
        scored = [(sum(map(mul, whole, array("b", numbers))), row) for row, numbers in found]
        return [row for _, row in heapq.nlargest(NEAREST, scored)]

    def embed_all(self) -> None:
        """Embeds every passage that has no vector of this model yet."""
        try:
            with self._index.open() as connection:
                seen = connection.execute(
                    "SELECT passages, length, (SELECT model FROM embedding), "
                    "(SELECT id || digest FROM documents ORDER BY id DESC LIMIT 1) FROM totals"
                ).fetchone()
            if seen == self._seen:
                return
            self._use_model()
            after = 0
            while after >= 0:
                after = self._batch(after)
            self._seen = (*seen[:2], self._model, seen[3])
        except EngineError as error:
            self._failed(error)
        except SearchBackendError as error:
            _log.warning("the library is not embedded now: %s", error.message)

    def _use_model(self) -> None:
        """Removes the vectors of another model: they cannot be compared."""
        with self._index.open(write=True) as connection:
            row = connection.execute("SELECT model FROM embedding").fetchone()
            if row != (self._model,):
                connection.execute("DELETE FROM vectors")
                connection.execute("DELETE FROM embedding")
                connection.execute("INSERT INTO embedding VALUES (?)", (self._model,))

    def _batch(self, after: int) -> int:
        """Embeds a few passages; returns the row of the last one, -1 if none is left."""
        with self._index.open() as connection:
            rows = connection.execute(_WITHOUT_VECTOR, (after,)).fetchall()
        if not rows:
            return -1
        heads = [" > ".join(filter(None, (title, heads))) for _, title, heads, _ in rows]
        texts = [f"{head}\n{row[3]}" for head, row in zip(heads, rows, strict=True)]
        made = self._vectors(texts)
        with self._index.open(write=True) as connection:
            for (row, _, _, text), vector in zip(rows, made, strict=True):
                signs, numbers = packed(vector) if vector else (b"", b"")
                connection.execute(_PUT, (row, signs, numbers, row, text))
        return int(rows[-1][0])

    def _vectors(self, texts: Sequence[str]) -> list[Vector]:
        """Returns the vectors of passages; an empty one for a passage that the server refuses."""
        try:
            return self._embed(texts, False, BATCH_SECONDS)
        except EngineError as error:
            if error.kind in DOWN:
                raise
            refused = error
        found: list[Vector] = []
        for text in texts:
            vector: Vector = ()
            with suppress(EngineError):
                [vector] = self._embed([text[:SHORT]], False, BATCH_SECONDS)
            found.append(vector)
        if not any(found):
            raise refused
        return found

    def _failed(self, error: EngineError) -> None:
        self._trouble, self._rests_until = error.message, self._clock() + REST
        _log.warning("the library is searched by words alone for %.0f s: %s", REST, error.message)


def packed(vector: Sequence[float]) -> tuple[bytes, bytes]:
    """Returns the signs of a vector, a bit each, and its numbers as signed bytes."""
    signs = int("".join("1" if each > 0 else "0" for each in vector), 2)
    # One scale for all vectors of a model, so that products can be compared: 127 is four times the
    # usual size of a number.
    scale = 32 * len(vector) ** 0.5 / (sum(map(mul, vector, vector)) ** 0.5 or 1.0)
    numbers = array("b", (max(-127, min(127, round(each * scale))) for each in vector))
    return signs.to_bytes((len(vector) + 7) // 8), numbers.tobytes()
