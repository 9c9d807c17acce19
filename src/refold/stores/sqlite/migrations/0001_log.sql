-- Sessions, their entries, and what hangs on them.
--
-- An entry's place is its session's key in the upper 32 bits and its seq in the lower 32. So a
-- session's entries lie together in the order of their seqs, and a run of them is a range of places.

-- A session's head is where its entries end: an append writes the entry and nothing else, unless it
-- moves the outline.
CREATE TABLE sessions (
    key             INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant          TEXT NOT NULL,
    session         TEXT,              -- its name; none once it is forgotten and only forks read it
    format          TEXT NOT NULL,
    profile         TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    used            INTEGER NOT NULL,  -- the minute it was last used, so that few appends move it
    outline         BLOB NOT NULL,
    revision        INTEGER NOT NULL,  -- raised by every change of this row
    not_before      INTEGER NOT NULL,  -- when a session of the same name was forgotten, or 0
    own_from        INTEGER NOT NULL,  -- the first seq that is not read through segments
    messages_before INTEGER NOT NULL,  -- how many messages come before that
    forked_from     TEXT,
    indexed         INTEGER NOT NULL,  -- entries up to here are in the word index
    unindexed       INTEGER NOT NULL,  -- whether there are more
    UNIQUE (tenant, session)
) STRICT;

CREATE INDEX sessions_used ON sessions (tenant, used);
CREATE INDEX sessions_unindexed ON sessions (key) WHERE unindexed;

CREATE TABLE entries (
    place     INTEGER PRIMARY KEY,
    id        BLOB NOT NULL,
    at        INTEGER NOT NULL,
    kind      TEXT NOT NULL,
    version   INTEGER NOT NULL,
    scope     TEXT NOT NULL,
    messages  INTEGER NOT NULL,      -- how many messages the session has up to here
    control   INTEGER NOT NULL,      -- whether it moves the outline
    forgotten INTEGER NOT NULL,
    rests_on  TEXT,                  -- JSON: [[first, last], ...]
    artifacts TEXT,                  -- JSON: the holes and the attached hashes
    body      BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX entries_id ON entries (id, place >> 32); -- once in each session
CREATE INDEX entries_control ON entries (place) WHERE control;
CREATE INDEX entries_derived ON entries (place) WHERE rests_on IS NOT NULL;

-- What a fork reads from other sessions (or has copied into itself), flat and in order.
CREATE TABLE segments (
    session INTEGER NOT NULL,
    first   INTEGER NOT NULL,
    last    INTEGER NOT NULL,
    source  INTEGER NOT NULL,
    PRIMARY KEY (session, first)
) STRICT, WITHOUT ROWID;

CREATE INDEX segments_source ON segments (source);

-- Which entries a fork has copied into itself, and from whom: a forget must find them.
CREATE TABLE copies (
    session INTEGER NOT NULL,
    first   INTEGER NOT NULL,
    last    INTEGER NOT NULL,
    source  INTEGER NOT NULL,
    PRIMARY KEY (session, first)
) STRICT, WITHOUT ROWID;

CREATE INDEX copies_source ON copies (source);

-- Large bodies. The data lies apart, so that counting a use does not write it again.
CREATE TABLE artifacts (
    key        INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant     TEXT NOT NULL,
    hash       TEXT NOT NULL,
    media_type TEXT NOT NULL,
    uses       INTEGER NOT NULL,
    UNIQUE (tenant, hash)
) STRICT;

CREATE TABLE artifact_data (
    key  INTEGER PRIMARY KEY,
    data BLOB NOT NULL
) STRICT;

-- Names of forgotten sessions, and when each was forgotten last.
CREATE TABLE tombstones (
    tenant       TEXT NOT NULL,
    session      TEXT NOT NULL,
    forgotten_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, session)
) STRICT, WITHOUT ROWID;

-- Facts about this store: the version of the word index, an erasure that must be finished.
CREATE TABLE facts (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The words of entries, by place. It keeps no text; words come split and in lower case, so the
-- plainest tokenizer finds them again.
CREATE VIRTUAL TABLE words USING fts5 (text, content = '', tokenize = 'ascii');
