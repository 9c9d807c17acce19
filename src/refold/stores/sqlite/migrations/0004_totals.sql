-- What requests came to, by day, session, model and key: a line grows with the append that changes
-- it. The sums are those of a receipt, all of them additive but `highest`.
CREATE TABLE totals (
    tenant           TEXT NOT NULL,
    day              INTEGER NOT NULL,   -- days since 1970, UTC
    session          INTEGER NOT NULL,   -- the session's key
    model            TEXT NOT NULL,
    key              TEXT NOT NULL,      -- the id of the key that the requests came with
    requests         REAL NOT NULL,
    folds            REAL NOT NULL,
    input            REAL NOT NULL,
    output           REAL NOT NULL,
    cache_read       REAL NOT NULL,
    cache_write      REAL NOT NULL,
    compared         REAL NOT NULL,
    paid             REAL NOT NULL,
    whole            REAL NOT NULL,
    summaries        REAL NOT NULL,
    summaries_cost   REAL NOT NULL,
    unused           REAL NOT NULL,
    unused_cost      REAL NOT NULL,
    rereads          REAL NOT NULL,
    rereads_cost     REAL NOT NULL,
    added_cost       REAL NOT NULL,
    misses           REAL NOT NULL,
    misses_cost      REAL NOT NULL,
    over_window      REAL NOT NULL,
    over_window_cost REAL NOT NULL,
    forced           REAL NOT NULL,
    forced_cost      REAL NOT NULL,
    older            REAL NOT NULL,
    older_cost       REAL NOT NULL,
    unpriced         REAL NOT NULL,
    estimated        REAL NOT NULL,
    highest          REAL NOT NULL,
    reported         REAL NOT NULL,
    miscounted       REAL NOT NULL,
    PRIMARY KEY (tenant, day, session, model, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX totals_session ON totals (session);

-- How the accounts of a session stand after its newest entry, so that the next append can go on
-- from there. No row: there was nothing to count. No state: count it again from its log.
CREATE TABLE accounts (
    session INTEGER PRIMARY KEY,
    tenant  TEXT NOT NULL,
    state   BLOB
) STRICT;

CREATE INDEX accounts_uncounted ON accounts (tenant, session) WHERE state IS NULL;

-- What is there already was not counted.
INSERT INTO accounts (session, tenant) SELECT key, tenant FROM sessions WHERE session IS NOT NULL;
