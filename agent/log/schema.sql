-- The tables of the session store, by steps: a store that is older takes those that it has not taken.
-- `postgres` translates the few words that only SQLite knows.

-- Step 1: sessions, events and runs
CREATE TABLE IF NOT EXISTS sessions (
  id TEXT PRIMARY KEY, title TEXT NOT NULL, model TEXT NOT NULL, mode TEXT NOT NULL,
  search TEXT NOT NULL, search_path TEXT NOT NULL, workspace TEXT,
  created REAL NOT NULL, updated REAL NOT NULL,
  messages INTEGER NOT NULL DEFAULT 0, last_seq INTEGER NOT NULL DEFAULT 0);
CREATE INDEX IF NOT EXISTS sessions_updated ON sessions(updated);
CREATE TABLE IF NOT EXISTS events (
  session TEXT NOT NULL, seq INTEGER NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL,
  at REAL NOT NULL, PRIMARY KEY (session, seq)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS events_deltas ON events(session, type)
  WHERE type IN ('text_delta', 'thinking_delta');
CREATE TABLE IF NOT EXISTS runs (
  session TEXT PRIMARY KEY, run_id TEXT NOT NULL, owner TEXT NOT NULL, beat REAL NOT NULL);

-- Step 2: settings: further settings of a session, as one JSON object; a new setting needs no new column.
ALTER TABLE sessions ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';

-- Step 3: deltas are temporary and have a table of their own. A run has a lease: `fence` grows with each holder,
-- `beat` is the time of its last sign of life, `takeovers` counts its changes of holder, `turn` is its question.
-- Signals are requests to the holder of the run, up to step 11.
CREATE TABLE deltas (
  session TEXT NOT NULL, seq INTEGER NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL,
  at REAL NOT NULL, PRIMARY KEY (session, seq)) WITHOUT ROWID;
INSERT INTO deltas SELECT session, seq, type, data, at FROM events
  WHERE type IN ('text_delta', 'thinking_delta');
DELETE FROM events WHERE type IN ('text_delta', 'thinking_delta');
DROP INDEX events_deltas;
ALTER TABLE sessions ADD COLUMN fence INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN fence INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN takeovers INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN turn TEXT NOT NULL DEFAULT '{}';
UPDATE runs SET beat = 0; -- by another clock
CREATE TABLE signals (
  id TEXT PRIMARY KEY, session TEXT NOT NULL, run_id TEXT NOT NULL, data TEXT NOT NULL,
  at REAL NOT NULL);
CREATE INDEX signals_session ON signals(session);

-- Step 4: checksums, see `agent.log.events`; NULL for what was written before.
ALTER TABLE events ADD COLUMN checksum BIGINT;

-- Step 5: whose a session is, by the name that a proxy gives; empty for whoever has the token. What people used is
-- counted by itself, because it outlives their sessions.
ALTER TABLE sessions ADD COLUMN owner TEXT NOT NULL DEFAULT '';
CREATE INDEX sessions_owner ON sessions(owner, updated);
CREATE TABLE used (
  owner TEXT NOT NULL, day TEXT NOT NULL, answers INTEGER NOT NULL, input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL, searches INTEGER NOT NULL, pages INTEGER NOT NULL,
  cost_usd REAL NOT NULL, unpriced INTEGER NOT NULL, PRIMARY KEY (owner, day));

-- Step 6: see `agent.log.find`: a turn's terms, by part; the last event that is indexed of a session, the turn that
-- may go on, and its language.
CREATE TABLE IF NOT EXISTS found_upto (
  session TEXT PRIMARY KEY, upto INTEGER NOT NULL, begin INTEGER NOT NULL, title TEXT NOT NULL,
  lang TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS found_turns (
  id INTEGER PRIMARY KEY, session TEXT NOT NULL, turn INTEGER NOT NULL, UNIQUE (session, turn));
CREATE VIRTUAL TABLE IF NOT EXISTS found_terms USING fts5(
  title, question, answer, sources, tokenize = "ascii tokenchars '_.@&,+#'");

-- Step 7: see `AttachmentStore`; `pages` is a JSON list of texts.
CREATE TABLE IF NOT EXISTS files (
  digest TEXT PRIMARY KEY, data BLOB NOT NULL, pages TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS attachments (
  session TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (session, digest)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS attachments_digest ON attachments(digest);

-- Step 8: see `agent.log.projects`; the files of one stand in `attachments` under its id.
CREATE TABLE IF NOT EXISTS projects (
  id TEXT PRIMARY KEY, owner TEXT NOT NULL, name TEXT NOT NULL, data TEXT NOT NULL,
  created REAL NOT NULL, updated REAL NOT NULL) WITHOUT ROWID;

-- Step 9: settings by which sessions are chosen, see `agent.log.session.CHOSEN_BY`.
ALTER TABLE sessions ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN temporary INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN provisional INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN project TEXT NOT NULL DEFAULT '';
UPDATE sessions SET archived = 1 WHERE settings LIKE '%"archived":true%';
UPDATE sessions SET pinned = 1 WHERE settings LIKE '%"pinned":true%';
UPDATE sessions SET temporary = 1 WHERE settings LIKE '%"temporary":true%';
UPDATE sessions SET provisional = 1 WHERE settings LIKE '%"provisional":true%';
UPDATE sessions SET project = coalesce((SELECT max(id) FROM projects
  WHERE sessions.settings LIKE '%"project":"' || projects.id || '"%'), '') WHERE settings LIKE '%"project":"%';
CREATE INDEX sessions_chosen ON sessions(owner, archived, updated);
CREATE INDEX sessions_project ON sessions(owner, project);

-- Step 10: programs with keys of their own, see `ProgramStore`.
CREATE TABLE IF NOT EXISTS programs (
  owner TEXT NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL UNIQUE, data TEXT NOT NULL,
  PRIMARY KEY (owner, name));

-- Step 11: who wants a run stopped says so in its row; its holder looks at each beat. `signals` stays, empty:
-- a process of an earlier version that still runs beside us writes there.
ALTER TABLE runs ADD COLUMN stop INTEGER NOT NULL DEFAULT 0;
