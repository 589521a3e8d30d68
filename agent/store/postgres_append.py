"""How events get into PostgreSQL, and what the other processes are told of them: one statement.

A notification holds less than 8,000 bytes. What fits goes along, what does not is only announced,
and small news of several sessions share one, so that a burst is few notifications.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agent.checksum import MODULUS, unnumbered
from agent.events import DELTAS
from agent.store.contract import Batch

CHANNEL = "searchloop"
MOST_BYTES = 7900  # of a notification, with room for the numbers that the server fills in
_NUMBER = 20  # bytes of them for each session

APPEND = f"""
WITH here AS (
  UPDATE sessions SET last_seq = last_seq + %(count)s, messages = messages + %(questions)s,
    updated = %(at)s
  WHERE id = %(session)s AND fence = coalesce(%(fence)s::integer, fence)
    AND last_seq = coalesce(%(after)s::integer, last_seq) RETURNING last_seq),
given AS (
  SELECT (last_seq - %(count)s + place)::integer AS seq, type, data, sum
  FROM here, unnest(%(types)s::text[], %(texts)s::text[], %(sums)s::bigint[])
    WITH ORDINALITY AS g(type, data, sum, place)),
cleared AS (
  DELETE FROM deltas USING here WHERE %(clears)s AND session = %(session)s),
stored AS (
  INSERT INTO events SELECT %(session)s, seq, type, data, %(at)s, (sum + seq) %% {MODULUS}
  FROM given
  WHERE type <> ALL (%(deltas)s::text[])),
passing AS (
  INSERT INTO deltas SELECT %(session)s, seq, type, data, %(at)s FROM given
  WHERE type = ANY (%(deltas)s::text[]))
SELECT last_seq, pg_notify(%(channel)s, %(head)s || %(news)s || last_seq || '}}]}}'),
  set_config('synchronous_commit', %(waiting)s, true)
FROM here"""

DELTAS_OF_ALL = """
WITH given AS (
  SELECT * FROM unnest(%(sessions)s::text[], %(fences)s::integer[], %(counts)s::integer[],
    %(packs)s::integer[], %(news)s::text[]) AS g(session, fence, count, pack, news)),
here AS (
  UPDATE sessions SET last_seq = last_seq + given.count, updated = %(at)s FROM given
  WHERE id = given.session AND sessions.fence = coalesce(given.fence, sessions.fence)
  RETURNING id, last_seq, given.count, pack, news),
passing AS (
  INSERT INTO deltas SELECT id, (last_seq - count + place)::integer, type, data, %(at)s
  FROM here JOIN unnest(%(owners)s::text[], %(places)s::integer[], %(types)s::text[],
    %(texts)s::text[]) AS r(session, place, type, data) ON r.session = id),
told AS (
  SELECT pg_notify(%(channel)s,
    %(head)s || string_agg(news || last_seq || '}', ',') || ']}') FROM here GROUP BY pack)
SELECT id, last_seq, (SELECT count(*) FROM told), set_config('synchronous_commit', 'off', true)
FROM here"""


def append_values(batch: Batch, process: str) -> Mapping[str, Any]:
    """What APPEND is given; answered with the last number, if it was done."""
    return {
        "session": batch.session,
        "count": len(batch.rows),
        "questions": batch.questions,
        "at": batch.at,
        "fence": batch.fence,
        "after": batch.after,
        "types": [kind for kind, _ in batch.rows],
        "texts": [text for _, text in batch.rows],
        "sums": [unnumbered(batch.session, *row, batch.at) for row in batch.rows],
        "deltas": list(DELTAS),
        "clears": batch.clears,
        "channel": CHANNEL,
        "head": _head(process),
        "news": _news(batch, process),
        "waiting": "on" if batch.durable else "off",
    }


def deltas_values(batches: Sequence[Batch], process: str) -> Mapping[str, Any]:
    """What DELTAS_OF_ALL is given; answered with session and last number of each that was done."""
    news = [_news(batch, process) for batch in batches]
    rows = [
        (batch.session, place, kind, text)
        for batch in batches
        for place, (kind, text) in enumerate(batch.rows, 1)
    ]
    owners, places, types, texts = map(list, zip(*rows, strict=True))
    return {
        "sessions": [batch.session for batch in batches],
        "fences": [batch.fence for batch in batches],
        "counts": [len(batch.rows) for batch in batches],
        "packs": _packs(news, len(_head(process))),
        "news": news,
        "at": batches[0].at,
        "owners": owners,
        "places": places,
        "types": types,
        "texts": texts,
        "channel": CHANNEL,
        "head": _head(process),
    }


def _head(process: str) -> str:
    return f'{{"from":"{process}","news":['


def _news(batch: Batch, process: str) -> str:
    """What is told of a batch, up to the last event's number, which the server fills in."""
    about = f'{{"session":{json.dumps(batch.session)}'
    events = ",".join(f"[{json.dumps(kind)},{text}]" for kind, text in batch.rows)
    inline = f'{about},"at":{batch.at!r},"events":[{events}],"last":'
    whole = len(_head(process)) + len(inline.encode()) + _NUMBER
    return inline if whole < MOST_BYTES else f'{about},"last":'


def _packs(news: Sequence[str], head: int) -> list[int]:
    """Into which notification each goes, so that none is too long."""
    packs: list[int] = []
    pack, size = 0, head
    for each in news:
        own = len(each.encode()) + _NUMBER
        if size + own >= MOST_BYTES and size > head:
            pack, size = pack + 1, head
        size += own
        packs.append(pack)
    return packs
