"""The tables of palace.db, as numbered migrations.

Owns: what is stored where. A migration is never edited once it has landed; the next one is added.
Never: reads or writes rows.
Called by: mempalace.store.palace, which runs what is missing in one transaction each.

In words: a `session` of a source has `exchanges`; an exchange has `records` in order of arrival,
each with one or more `keys` (R3) and, for what opened it, `sightings`; the texts of its records
joined by a blank line make two streams, which are kept as `drawers`. `files` holds the checkpoints
(R5), `waiting` the texts that must wait, `tallies` what was left out by rule, `quarantine` where
bytes were no record (R6), `outbox` what must be embedded or leave the index, `vectors` what is
embedded, `tombstones` the keys of what was forgotten (R4), `owed` what a fork left to a parent that
was not read yet (R3).
"""

from __future__ import annotations

_M001 = """
CREATE TABLE wings (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  root TEXT                       -- the project folder that the name was first given to
);
CREATE TABLE folders (            -- the first answer once given for a folder: folders vanish
  path TEXT PRIMARY KEY,
  wing INTEGER NOT NULL REFERENCES wings (id)
) WITHOUT ROWID;
CREATE TABLE sessions (
  n INTEGER PRIMARY KEY,
  source TEXT NOT NULL,
  id TEXT NOT NULL,
  cwd TEXT,
  wing INTEGER REFERENCES wings (id),
  started_at INTEGER,             -- microseconds since 1970 UTC, like every time here
  UNIQUE (source, id)
);
CREATE TABLE files (
  n INTEGER PRIMARY KEY,
  path TEXT NOT NULL UNIQUE,
  source TEXT NOT NULL,
  generation INTEGER NOT NULL DEFAULT 0,
  content INTEGER NOT NULL DEFAULT 0,
  offset INTEGER NOT NULL DEFAULT 0,
  tail INTEGER NOT NULL DEFAULT 0,
  size INTEGER NOT NULL DEFAULT 0,
  mtime_ns INTEGER NOT NULL DEFAULT 0,
  device INTEGER NOT NULL DEFAULT 0,
  inode INTEGER NOT NULL DEFAULT 0,
  prefix_length INTEGER NOT NULL DEFAULT 0,
  prefix BLOB NOT NULL DEFAULT x'',
  edge BLOB NOT NULL DEFAULT x'',
  crc INTEGER NOT NULL DEFAULT 0,
  state TEXT NOT NULL DEFAULT '{}',
  parser INTEGER NOT NULL DEFAULT 0,
  settings TEXT NOT NULL DEFAULT '',
  rereading INTEGER NOT NULL DEFAULT 0,
  gone_at INTEGER,
  failures INTEGER NOT NULL DEFAULT 0,
  failure TEXT
);
CREATE INDEX files_by_inode ON files (inode, device);
CREATE TABLE waiting (
  file INTEGER NOT NULL REFERENCES files (n),
  digest TEXT NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (file, digest)
) WITHOUT ROWID;
CREATE TABLE tallies (
  file INTEGER NOT NULL REFERENCES files (n),
  rule TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (file, rule)
) WITHOUT ROWID;
CREATE TABLE quarantine (
  file INTEGER NOT NULL REFERENCES files (n),
  offset INTEGER NOT NULL,
  length INTEGER NOT NULL,
  reason TEXT NOT NULL,
  parser INTEGER NOT NULL,
  PRIMARY KEY (file, offset)
) WITHOUT ROWID;
CREATE TABLE exchanges (
  n INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  session INTEGER NOT NULL REFERENCES sessions (n),
  wing INTEGER REFERENCES wings (id),
  room TEXT NOT NULL DEFAULT 'general',
  hall TEXT,
  memory_type TEXT,
  importance INTEGER NOT NULL DEFAULT 3,
  key_sentence TEXT,
  headless INTEGER NOT NULL DEFAULT 0,
  cwd TEXT,
  started_at INTEGER,
  ended_at INTEGER,
  file INTEGER REFERENCES files (n),
  content INTEGER NOT NULL DEFAULT 0,
  offset INTEGER NOT NULL DEFAULT 0,
  talk_chars INTEGER NOT NULL DEFAULT 0,
  talk_drawers INTEGER NOT NULL DEFAULT 0,
  tools_drawers INTEGER NOT NULL DEFAULT 0,
  retired TEXT                    -- why it is out of search and export; its words are kept
);
CREATE INDEX exchanges_by_session ON exchanges (session);
CREATE INDEX exchanges_by_file ON exchanges (file);
CREATE INDEX exchanges_by_moment ON exchanges (wing, importance, started_at)
  WHERE retired IS NULL AND headless = 0;
CREATE INDEX exchanges_by_time ON exchanges (importance, started_at)
  WHERE retired IS NULL AND headless = 0;
CREATE TABLE records (
  n INTEGER PRIMARY KEY,
  exchange INTEGER NOT NULL REFERENCES exchanges (n),
  seq INTEGER NOT NULL,           -- order of arrival in the exchange, over both streams
  role INTEGER NOT NULL,
  kind TEXT NOT NULL DEFAULT '',
  chars INTEGER NOT NULL,         -- code points of its text in the stream
  omitted INTEGER NOT NULL DEFAULT 0,
  said_at INTEGER,
  parser INTEGER NOT NULL,
  call INTEGER                    -- for a result: the record of its call
);
CREATE UNIQUE INDEX records_in_order ON records (exchange, seq);
CREATE TABLE keys (
  key BLOB PRIMARY KEY,           -- 16 bytes, MD5
  record INTEGER NOT NULL REFERENCES records (n)
) WITHOUT ROWID;
CREATE INDEX keys_of_record ON keys (record);
CREATE TABLE sightings (
  file INTEGER NOT NULL REFERENCES files (n),
  offset INTEGER NOT NULL,
  record INTEGER NOT NULL REFERENCES records (n),
  content INTEGER NOT NULL,       -- the content generation of the file in which it was seen
  PRIMARY KEY (file, offset, record)
) WITHOUT ROWID;
CREATE INDEX sightings_of_record ON sightings (record);
CREATE TABLE withdrawn (          -- queued words that their author took back: a copy may end before
  key BLOB PRIMARY KEY
) WITHOUT ROWID;
CREATE TABLE tombstones (
  key BLOB PRIMARY KEY
) WITHOUT ROWID;

CREATE TABLE drawers (
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  exchange INTEGER NOT NULL REFERENCES exchanges (n),
  stream INTEGER NOT NULL,        -- 0 talk, 1 tools
  position INTEGER NOT NULL,
  start INTEGER NOT NULL,         -- code points before this window in its stream
  text TEXT NOT NULL,
  segments TEXT                   -- bigrams of scripts that are written without spaces
);
CREATE UNIQUE INDEX drawers_in_order ON drawers (exchange, stream, position);
CREATE VIEW talk_drawers AS SELECT n, text, segments FROM drawers WHERE stream = 0;
CREATE VIEW tools_drawers AS SELECT n, text, segments FROM drawers WHERE stream = 1;
CREATE VIRTUAL TABLE talk USING fts5 (
  text, segments, content = 'talk_drawers', content_rowid = 'n',
  tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE tools USING fts5 (
  text, segments, content = 'tools_drawers', content_rowid = 'n',
  tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE TRIGGER talk_in AFTER INSERT ON drawers WHEN new.stream = 0 BEGIN
  INSERT INTO talk (rowid, text, segments) VALUES (new.n, new.text, new.segments);
END;
CREATE TRIGGER talk_out AFTER DELETE ON drawers WHEN old.stream = 0 BEGIN
  INSERT INTO talk (talk, rowid, text, segments)
  VALUES ('delete', old.n, old.text, old.segments);
END;
CREATE TRIGGER talk_change AFTER UPDATE OF text, segments ON drawers WHEN old.stream = 0 BEGIN
  INSERT INTO talk (talk, rowid, text, segments)
  VALUES ('delete', old.n, old.text, old.segments);
  INSERT INTO talk (rowid, text, segments) VALUES (new.n, new.text, new.segments);
END;
CREATE TRIGGER tools_in AFTER INSERT ON drawers WHEN new.stream = 1 BEGIN
  INSERT INTO tools (rowid, text, segments) VALUES (new.n, new.text, new.segments);
END;
CREATE TRIGGER tools_out AFTER DELETE ON drawers WHEN old.stream = 1 BEGIN
  INSERT INTO tools (tools, rowid, text, segments)
  VALUES ('delete', old.n, old.text, old.segments);
END;
CREATE TRIGGER tools_change AFTER UPDATE OF text, segments ON drawers WHEN old.stream = 1 BEGIN
  INSERT INTO tools (tools, rowid, text, segments)
  VALUES ('delete', old.n, old.text, old.segments);
  INSERT INTO tools (rowid, text, segments) VALUES (new.n, new.text, new.segments);
END;
CREATE TABLE closets (
  n INTEGER PRIMARY KEY,
  exchange INTEGER NOT NULL REFERENCES exchanges (n),
  position INTEGER NOT NULL,
  header TEXT,                    -- AAAK
  lines TEXT NOT NULL,
  UNIQUE (exchange, position)
);
CREATE TABLE outbox (
  item TEXT PRIMARY KEY,          -- a drawer's or a closet's id
  operation TEXT NOT NULL,        -- 'embed' or 'delete'
  md5 BLOB,                       -- of the text to embed
  due_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE notes (              -- small facts about the palace itself: the daemon's heartbeat
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;
"""

_M002 = """
CREATE TABLE owed (               -- copied records that were left to a parent, and are not stored
  file INTEGER NOT NULL REFERENCES files (n),
  key BLOB NOT NULL,
  session TEXT NOT NULL,          -- the parent's
  called INTEGER NOT NULL DEFAULT 0,  -- the parent cannot tell them: the copy is read for them
  PRIMARY KEY (file, key)
) WITHOUT ROWID;
"""

_M003 = """
CREATE TABLE models (             -- what makes vectors: another fingerprint is another model
  n INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  dimension INTEGER NOT NULL,
  fingerprint TEXT NOT NULL UNIQUE
);
CREATE TABLE vectors (
  n INTEGER PRIMARY KEY AUTOINCREMENT,  -- grows with each one: the projection has those up to n
  model INTEGER NOT NULL REFERENCES models (n),
  drawer INTEGER NOT NULL REFERENCES drawers (n),
  exchange INTEGER NOT NULL REFERENCES exchanges (n),
  md5 BLOB NOT NULL,              -- of the text that was embedded
  vector BLOB NOT NULL            -- float16, of length 1
);
CREATE UNIQUE INDEX vectors_of_drawer ON vectors (model, drawer);
CREATE INDEX vectors_of_text ON vectors (md5, model);
CREATE INDEX outbox_by_time ON outbox (operation, due_at);
CREATE TRIGGER vector_out AFTER DELETE ON drawers WHEN old.stream = 0 BEGIN
  DELETE FROM vectors WHERE drawer = old.n;
END;
"""

_M004 = """
-- by which version of the rules room, hall, type, importance and key sentence were derived
ALTER TABLE exchanges ADD COLUMN derived INTEGER NOT NULL DEFAULT 0;
CREATE INDEX exchanges_by_derivation ON exchanges (derived);
CREATE TABLE entities (           -- who and what an exchange names, the most telling first
  exchange INTEGER NOT NULL REFERENCES exchanges (n),
  place INTEGER NOT NULL,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  PRIMARY KEY (exchange, place)
) WITHOUT ROWID;
CREATE INDEX entities_by_name ON entities (name);
CREATE TRIGGER exchange_out AFTER DELETE ON exchanges BEGIN
  DELETE FROM entities WHERE exchange = old.n;
END;
"""

MIGRATIONS: tuple[str, ...] = (_M001, _M002, _M003, _M004)
"""Each is run once, in order; `PRAGMA user_version` counts those that were."""
