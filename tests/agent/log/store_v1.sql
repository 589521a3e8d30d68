-- A store as version 1 left it: one whole session, and one whose process had died.
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE events (
  session TEXT NOT NULL, seq INTEGER NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL,
  at REAL NOT NULL, PRIMARY KEY (session, seq)) WITHOUT ROWID;
INSERT INTO "events" VALUES('half',1,'user_message','{"text":"hi"}',1760000008.0);
INSERT INTO "events" VALUES('half',2,'run_started','{"run_id":"r1","model":"scripted:one","mode":"ask","search":"off","search_path":"off"}',1760000008.0);
INSERT INTO "events" VALUES('half',3,'text_delta','{"text":"Half an "}',1760000009.0);
INSERT INTO "events" VALUES('half',4,'thinking_delta','{"text":"hm"}',1760000010.0);
INSERT INTO "events" VALUES('half',5,'text_delta','{"text":"answer"}',1760000011.0);
INSERT INTO "events" VALUES('kept',1,'user_message','{"text":"When is high water? ½"}',1760000001.0);
INSERT INTO "events" VALUES('kept',2,'run_started','{"run_id":"r0","model":"ollama:qwen3:8b","mode":"agent","search":"auto","search_path":"local"}',1760000001.0);
INSERT INTO "events" VALUES('kept',4,'message','{"text":"","thinking":"","tool_calls":[{"id":"c1","name":"web_search","arguments":{"query":"tides"},"problem":null}],"citations":[],"sources":[],"details":{},"step":1,"usage":{"input_tokens":5,"output_tokens":2,"cached_tokens":null,"reasoning_tokens":null,"searches":null,"pages":null,"seconds":null,"cost_usd":null},"stop_reason":"tool_calls"}',1760000003.0);
INSERT INTO "events" VALUES('kept',5,'tool_call','{"call_id":"c1","name":"web_search","arguments":{"query":"tides"},"effect":"network"}',1760000003.0);
INSERT INTO "events" VALUES('kept',6,'tool_result','{"call_id":"c1","name":"web_search","is_error":false,"content":"[1] Tides","details":{},"sources":[{"n":1,"url":"https://t.example/","title":"Tides","state":"found"}]}',1760000004.0);
INSERT INTO "events" VALUES('kept',7,'message','{"text":"At 07:40 [1].","thinking":"","tool_calls":[],"citations":[{"n":1,"url":"https://t.example/","title":"Tides","quote":null,"verified":null,"spans":[[9,12]]}],"sources":[{"n":1,"url":"https://t.example/","title":"Tides","state":"cited"}],"details":{},"step":2,"usage":{"input_tokens":9,"output_tokens":5,"cached_tokens":null,"reasoning_tokens":null,"searches":null,"pages":null,"seconds":null,"cost_usd":null},"stop_reason":"stop"}',1760000005.0);
INSERT INTO "events" VALUES('kept',8,'run_finished','{"run_id":"r0","reason":"stop","answer":"At 07:40 [1].","citations":[],"sources":[],"usage":{"input_tokens":9,"output_tokens":5,"cached_tokens":null,"reasoning_tokens":null,"searches":null,"pages":null,"seconds":null,"cost_usd":null},"search_path":"local:ddg","model":"ollama:qwen3:8b","session_id":"kept"}',1760000005.0);
CREATE TABLE runs (
  session TEXT PRIMARY KEY, run_id TEXT NOT NULL, owner TEXT NOT NULL, beat REAL NOT NULL);
INSERT INTO "runs" VALUES('half','r1','elsewhere/1/a',1760000007.0);
CREATE TABLE sessions (
  id TEXT PRIMARY KEY, title TEXT NOT NULL, model TEXT NOT NULL, mode TEXT NOT NULL,
  search TEXT NOT NULL, search_path TEXT NOT NULL, workspace TEXT,
  created REAL NOT NULL, updated REAL NOT NULL,
  messages INTEGER NOT NULL DEFAULT 0, last_seq INTEGER NOT NULL DEFAULT 0);
INSERT INTO "sessions" VALUES('kept','When is high water?','ollama:qwen3:8b','agent','auto','local:ddg',NULL,1760000000.0,1760000005.0,1,8);
INSERT INTO "sessions" VALUES('half','','scripted:one','ask','off','off',NULL,1760000006.0,1760000011.0,1,5);
CREATE INDEX sessions_updated ON sessions(updated);
CREATE INDEX events_deltas ON events(session, type)
  WHERE type IN ('text_delta', 'thinking_delta');
COMMIT;
