"""Full-text search over chats: questions, answers, sources and titles, by turn.

The terms of `searchloop.analysis` are indexed beside the log: in FTS5, or in a tsvector below a GIN
index. A session whose log has grown is indexed anew when somebody searches, the newest first; what
takes longer than a moment goes on in the background. Temporary chats are never indexed.
https://www.sqlite.org/fts5.html, https://www.postgresql.org/docs/current/textsearch.html
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from searchloop.agent.errors import StoreError
from searchloop.agent.log.contract import Database, forget, rows_of
from searchloop.agent.text import object_in
from searchloop.analysis.language import language
from searchloop.analysis.terms import folded, places, terms, wanted

PARTS = ("title", "question", "answer", "sources")
_TURNS_SHOWN = 3  # of one session
_LONGEST = 200_000  # characters of one part that count
_LONGEST_TERM = 400  # characters; PostgreSQL takes 2,046 bytes
_MOST_WORDS = 32
_MOST_EVENTS = 200  # of one turn
_PLAIN = re.compile(r"[^\W_][\w.@&,+#]*")
_AROUND = 40  # characters of a snippet before its first marked word
_SNIPPET = 240
_WANTED = ("user_message", "message", "run_finished", "turn_removed", "turn_restored")
_HIDING = _WANTED[-2:]
_STALE = (
    "SELECT s.id, s.last_seq FROM sessions s LEFT JOIN found_upto f ON f.session = s.id WHERE "
    "(f.session IS NULL OR f.upto < s.last_seq OR f.title != s.title) AND s.temporary = 0 "
    "AND s.last_seq > 0 ORDER BY s.updated DESC"
)
_EVENTS = (
    f"SELECT seq, type, data FROM events WHERE session = ? AND seq > ? AND type IN "
    f"({', '.join('?' * len(_WANTED))}) ORDER BY seq"
)
_FOUND = (
    "JOIN found_turns t ON t.id = found_terms.rowid JOIN sessions s ON s.id = t.session "
    "WHERE s.owner = ? AND s.temporary = 0 AND "
)
# By store: how terms are stored, and the rows (session, turn, words held) of a query.
_INSERT = {
    "sqlite": "INSERT INTO found_terms (rowid, title, question, answer, sources) "
    "VALUES (?, ?, ?, ?, ?)",
    "postgres": "INSERT INTO found_terms (rowid, terms) VALUES (?, ?::tsvector)",
}
_SELECT = {
    "sqlite": f"SELECT t.session, t.turn FROM found_terms {_FOUND} found_terms MATCH ? "
    "ORDER BY bm25(found_terms, 4.0, 2.0, 1.0, 0.5) LIMIT ?",
    "postgres": f"SELECT t.session, t.turn FROM found_terms {_FOUND} terms @@ ?::tsquery "
    "ORDER BY ts_rank(terms, ?::tsquery) DESC, t.id DESC LIMIT ?",
}
_MOST_TERMS = {"sqlite": 100_000, "postgres": 16_000}  # of one part; positions end at 16,383
_CANDIDATES = 400


@dataclass(frozen=True, slots=True)
class FoundTurn:
    """A place in a chat. `turn` is the number of its question, 0 for the title.

    `part` is one of PARTS; `marks` are the spans of matched words in `snippet`, in code points.
    """

    turn: int
    part: str
    snippet: str
    marks: tuple[tuple[int, int], ...]
    words: tuple[str, ...]


@dataclass(slots=True)
class _Turn:
    """What is said in a turn, as lists of texts by part."""

    texts: dict[str, list[str]] = field(default_factory=lambda: {part: [] for part in PARTS})

    def add(self, kind: str, data: Mapping[str, Any]) -> None:
        if kind == "user_message":
            self.texts["question"].append(str(data.get("text", "")))
            return
        if kind == "message":
            self.texts["answer"].append(str(data.get("text", "")))
        for source in data.get("sources") or ():
            told = f"{source.get('title', '')} {source.get('url', '')}"
            if told not in self.texts["sources"]:
                self.texts["sources"].append(told)

    def text(self, part: str) -> str:
        return "\n".join(self.texts[part])[:_LONGEST]


class ChatSearch:
    """Finds turns of a person's chats. Any thread may call it."""

    moment = 0.5  # seconds that a search spends on indexing before it answers

    def __init__(self, db: Database) -> None:
        self._db = db
        self._busy = threading.Lock()

    def find(self, person: str, query: str, limit: int) -> dict[str, list[FoundTurn]]:
        """Returns the turns that hold all words of a query, by session, the best session first.

        The last word may be the beginning of one.
        """
        if not query.strip():
            return {}
        if self._db.trouble is None:
            self.index(self.moment)
        langs = rows_of(self._db, "SELECT DISTINCT lang FROM found_upto")
        words = _words(query, [lang for (lang,) in langs if lang])
        if not words:
            return {}
        return self._told(self._rows(person, words), words, limit)

    def _told(
        self, rows: Iterable[Sequence[Any]], words: Sequence[_Word], limit: int
    ) -> dict[str, list[FoundTurn]]:
        """Groups rows (session, turn) by session, with their snippets."""
        told: dict[str, list[FoundTurn]] = {}
        for session, turn in rows:
            held = told.get(session, [])
            if len(held) >= _TURNS_SHOWN or (not held and len(told) >= limit):
                continue
            if found := _best(turn, self._turn(session, turn), words):
                told.setdefault(session, []).append(found)
        return told

    def _turn(self, session: str, turn: int) -> _Turn:
        if not turn:
            query = "SELECT title FROM sessions WHERE id = ?"
            return _titled(next(iter(rows_of(self._db, query, (session,))), ("",))[0])
        rows = rows_of(self._db, f"{_EVENTS} LIMIT {_MOST_EVENTS}", (session, turn - 1, *_WANTED))
        return _turns(rows).get(turn) or _Turn()

    @property
    def is_busy(self) -> bool:
        """True while chats are indexed: a search may find less than there is."""
        return self._busy.locked()

    def index(self, seconds: float) -> bool:
        """Indexes what is new for so long; the rest on a thread. Returns True when all is done."""
        if not self._busy.acquire(blocking=False):
            return False
        done = False
        try:
            done = self._indexed(time.monotonic() + seconds)
        except StoreError:  # a store that is busy or broken: the search says so, or it finds less
            pass
        finally:
            if done:
                self._busy.release()
        if not done:
            threading.Thread(target=self._index_all, name="chat search", daemon=True).start()
        return done

    def _index_all(self) -> None:
        try:
            with suppress(StoreError):  # closed meanwhile, or tried again with the next search
                self._indexed(float("inf"))
        finally:
            self._busy.release()

    def _indexed(self, until: float) -> bool:
        for session, upto in rows_of(self._db, _STALE):
            if time.monotonic() > until:
                return False
            self._index(session, upto)
        return True

    def _index(self, session: str, upto: int) -> None:
        """Indexes all turns of a session; what came behind `upto` makes it stale again."""
        turns = _turns(rows_of(self._db, _EVENTS, (session, 0, *_WANTED)))
        own = [(turn, self._terms(its)) for turn, its in turns.items()]
        lang = language("\n".join(its.text("answer") for its in turns.values()))
        with self._db.transaction() as db:
            # An UPDATE, which locks the row: a session that is deleted now is not indexed again.
            query = "UPDATE sessions SET id = id WHERE id = ? RETURNING title"
            row = db.execute(query, (session,)).fetchone()
            if row is None:
                return
            forget(db, session)
            for turn, held in [(0, self._terms(_titled(row[0]))), *own]:
                query = "INSERT INTO found_turns (session, turn) VALUES (?, ?) RETURNING id"
                [number] = db.execute(query, (session, turn)).fetchone()
                db.execute(_INSERT[self._db.dialect], (number, *held))
            query = "INSERT INTO found_upto VALUES (?, ?, 0, ?, ?)"
            db.execute(query, (session, upto, row[0], lang))

    def _terms(self, turn: _Turn) -> list[str]:
        """Returns the values of a row: the terms of each part, or of all of them with positions."""
        most = _MOST_TERMS[self._db.dialect]
        parts = {part: terms(turn.text(part))[:most] for part in PARTS}
        if self._db.dialect == "sqlite":
            return [" ".join(held) for held in parts.values()]
        lexemes: list[str] = []
        for weight, held in zip("ABCD", parts.values(), strict=True):
            lexemes += (f"{_quoted(term)}:{n}{weight}" for n, term in enumerate(held, 1))
        return [" ".join(lexemes)]

    def _rows(self, person: str, words: Sequence[_Word]) -> list[Any]:
        if self._db.dialect == "sqlite":
            asked = [" AND ".join(f"({' OR '.join(word.fts5())})" for word in words)]
        else:
            asked = [" & ".join(f"({' | '.join(word.tsquery())})" for word in words)] * 2
        return rows_of(self._db, _SELECT[self._db.dialect], (person, *asked, _CANDIDATES))


def _turns(rows: Iterable[Sequence[Any]]) -> dict[int, _Turn]:
    """Folds events (seq, type, data) into turns that are not removed, by their numbers."""
    turns: dict[int, _Turn] = {}
    now: _Turn | None = None
    removed: set[int] = set()
    for seq, kind, text in rows:
        data = object_in(text) if isinstance(text, str) else None
        if data is None:
            continue
        if kind in _HIDING:
            (removed.add if kind == _HIDING[0] else removed.discard)(data.get("turn", 0))
            continue
        if kind == "user_message":
            now = turns[seq] = _Turn()
        if now is not None:
            now.add(kind, data)
    return {turn: its for turn, its in turns.items() if turn not in removed}


def _titled(title: str) -> _Turn:
    turn = _Turn()
    turn.texts["title"].append(title)
    return turn


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a query: the terms that stand for it, and what it may be the beginning of."""

    terms: tuple[str, ...]
    begins: str = ""

    def meets(self, term: str) -> bool:
        return term in self.terms or bool(self.begins and term.startswith(self.begins))

    def fts5(self) -> list[str]:
        found = [f'"{term}"' for term in self.terms]
        return [*found, f'"{self.begins}" *'] if self.begins else found

    def tsquery(self) -> list[str]:
        found = [_quoted(term) for term in self.terms]
        return [*found, f"{_quoted(self.begins)}:*"] if self.begins else found


def _words(query: str, langs: Sequence[str]) -> list[_Word]:
    """Returns the words of a query; the last one may be cut short, because people type."""
    last = (query.split() or [""])[-1] if query[-1:].strip() else ""
    own = {term for word in wanted(last, langs) for term in word}
    last = folded(last) if 1 < len(last) <= _LONGEST_TERM and _PLAIN.fullmatch(folded(last)) else ""
    return [
        _Word(word, last if last and not own.isdisjoint(word) else "")
        for word in wanted(query, langs)[:_MOST_WORDS]
        if word and max(map(len, word)) <= _LONGEST_TERM
    ]


def _quoted(term: str) -> str:
    return "'" + term.replace("\\", "\\\\").replace("'", "''") + "'"


def _best(turn: int, its: _Turn, words: Sequence[_Word]) -> FoundTurn | None:
    """Returns the part of a turn with most of the words, cut around them; None without any."""
    best: tuple[int, str, str, list[tuple[int, int, int]]] | None = None
    for part in PARTS:
        text = its.text(part)
        marks = _marks(text, words)
        count = len({word for *_, word in marks})
        if count and (best is None or count > best[0]):
            best = count, part, text, marks
    if best is None:
        return None
    _, part, text, marks = best
    at = max(marks, key=lambda mark: (_near(marks, mark[0]), -mark[0]))[0]
    start = max(0, at - _AROUND)
    start = text.rfind(" ", 0, start) + 1 if start and " " in text[start - 20 : start] else start
    end = min(len(text), start + _SNIPPET)
    before, after = "… " if start else "", " …" if end < len(text) else ""
    inside = [mark for mark in marks if start <= mark[0] and mark[1] <= end]
    shift = len(before) - start
    snippet = text[start:end].replace("\n", " ")
    spans = tuple((first + shift, last + shift) for first, last, _ in inside)
    held = dict.fromkeys(text[first:last] for first, last, _ in inside)
    return FoundTurn(turn, part, before + snippet + after, spans, tuple(held))


def _near(marks: Sequence[tuple[int, int, int]], start: int) -> int:
    """Returns how many different words stand in a snippet that begins here."""
    return len({word for first, last, word in marks if start <= first and last - start < _SNIPPET})


def _marks(text: str, words: Sequence[_Word]) -> list[tuple[int, int, int]]:
    """Returns (start, end, number of the word) of each place that matches, without overlaps."""
    found: list[tuple[int, int, int]] = []
    for start, end, held in places(text, language(text)):
        number = next((n for n, word in enumerate(words) if any(map(word.meets, held))), None)
        if number is None:
            continue
        if found and start < found[-1][1]:  # a run without spaces: neighbours share letters
            first, last, word = found[-1]
            found[-1] = first, max(last, end), word
            found.append((last, last, number)) if number != word and end <= last else None
        else:
            found.append((start, end, number))
    return [mark for mark in found if mark[1] > mark[0]]
