"""The tables of the event log, as steps: each brings a store from one version to the next.

A step is never changed once it was released; what comes later is a new one.
"""

from __future__ import annotations

_FIRST = (
    """CREATE TABLE IF NOT EXISTS sessions (
  id TEXT PRIMARY KEY, title TEXT NOT NULL, model TEXT NOT NULL, mode TEXT NOT NULL,
  search TEXT NOT NULL, search_path TEXT NOT NULL, workspace TEXT,
  created REAL NOT NULL, updated REAL NOT NULL,
  messages INTEGER NOT NULL DEFAULT 0, last_seq INTEGER NOT NULL DEFAULT 0)""",
    "CREATE INDEX IF NOT EXISTS sessions_updated ON sessions(updated)",
    """CREATE TABLE IF NOT EXISTS events (
  session TEXT NOT NULL, seq INTEGER NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL,
  at REAL NOT NULL, PRIMARY KEY (session, seq)) WITHOUT ROWID""",
    """CREATE INDEX IF NOT EXISTS events_deltas ON events(session, type)
  WHERE type IN ('text_delta', 'thinking_delta')""",
    """CREATE TABLE IF NOT EXISTS runs (
  session TEXT PRIMARY KEY, run_id TEXT NOT NULL, owner TEXT NOT NULL, beat REAL NOT NULL)""",
)
# What else a session remembers, as one JSON object: a new setting needs no new column.
_SETTINGS = ("ALTER TABLE sessions ADD COLUMN settings TEXT NOT NULL DEFAULT '{}'",)
# Deltas are scaffolding, kept apart from what stays. A run is held under a lease: `fence` grows
# with each holder, `beat` is when it was last heard of, `takeovers` how often another went on with
# it, `turn` what it was asked to do. Signals are for whoever holds the run.
_LEASES = (
    """CREATE TABLE deltas (
  session TEXT NOT NULL, seq INTEGER NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL,
  at REAL NOT NULL, PRIMARY KEY (session, seq)) WITHOUT ROWID""",
    """INSERT INTO deltas SELECT session, seq, type, data, at FROM events
  WHERE type IN ('text_delta', 'thinking_delta')""",
    "DELETE FROM events WHERE type IN ('text_delta', 'thinking_delta')",
    "DROP INDEX events_deltas",
    "ALTER TABLE sessions ADD COLUMN fence INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE runs ADD COLUMN fence INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE runs ADD COLUMN takeovers INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE runs ADD COLUMN turn TEXT NOT NULL DEFAULT '{}'",
    "UPDATE runs SET beat = 0",  # by another clock
    """CREATE TABLE signals (
  id TEXT PRIMARY KEY, session TEXT NOT NULL, run_id TEXT NOT NULL, data TEXT NOT NULL,
  at REAL NOT NULL)""",
    "CREATE INDEX signals_session ON signals(session)",
)

# See `agent.checksum`; NULL for what was written before.
_CHECKSUMS = ("ALTER TABLE events ADD COLUMN checksum BIGINT",)

STEPS: tuple[tuple[str, ...], ...] = (_FIRST, _SETTINGS, _LEASES, _CHECKSUMS)
